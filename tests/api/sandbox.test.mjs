// `vitrine serve --sandbox` serves everything as without, and is confined.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
  chmodSync, cpSync, existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { Server, golden, messages, model, slow, vitrine } from "./server.mjs";

process.env.NODE_TLS_REJECT_UNAUTHORIZED = "0";  // the certificate is of our own making

const skip = !existsSync("/proc/sys/kernel/seccomp/actions_avail") ? "this kernel has no seccomp filters"
  : slow > 1 ? "a sanitizer does at its end what the sandbox forbids" : false;
const folder = mkdtempSync(join(tmpdir(), "sandbox-"));
after(() => rmSync(folder, { recursive: true }));

// Every thread has given up what it had.
function expect_confined(server) {
  const tasks = readdirSync(`/proc/${server.child.pid}/task`);
  assert.ok(tasks.length > 3);
  for (const task of tasks) {
    const status = readFileSync(`/proc/${server.child.pid}/task/${task}/status`, "utf8");
    assert.match(status, /^Seccomp:\t2$/m);
    assert.match(status, /^NoNewPrivs:\t1$/m);
    assert.match(status, /^CapEff:\t0+$/m);
    assert.match(status, /^CapPrm:\t0+$/m);
  }
}

const schema = { type: "object", properties: { name: { type: "string", maxLength: 8 } },
                 required: ["name"], additionalProperties: false };
const requests = [
  ["/v1/completions", { prompt: "the cat", max_tokens: 8, temperature: 0 }],
  ["/v1/completions", { prompt: ["the", "cat"], max_tokens: 8, n: 2, logprobs: 2 }],
  ["/v1/chat/completions", { messages, max_tokens: 8 }],
  ["/v1/chat/completions", { messages, max_tokens: 8, stream: true }],
  ["/v1/chat/completions", { messages, max_tokens: 64,
    response_format: { type: "json_schema", json_schema: { name: "x", schema } } }],
  ["/v1/embeddings", { input: ["the cat", "on the mat"] }],
  ["/tokenize", { content: "the cat sat on the mat" }],
  ["/v1/models"], ["/metrics"], ["/api/snapshot"], ["/health"], ["/ready"],
];

async function expect_served(server, headers) {
  const send = async ([path, body]) => {
    const answer = await (body ? server.post(path, body, headers) : fetch(server.url + path, { headers }));
    const text = await answer.text();
    assert.equal(answer.status, 200, `${path}: ${text}\n${server.log}`);
  };
  for (const request of requests) await send(request);
  for (let round = 0; round < 4; ++round)
    await Promise.all([...requests, ...requests].map(send));
  // One that is bad, and one whose client leaves.
  assert.equal((await server.post("/v1/completions", "{", headers)).status, 400);
  const left = new AbortController();
  const stream = await fetch(server.url + "/v1/completions", { method: "POST", headers, signal: left.signal,
    body: JSON.stringify({ prompt: "the", max_tokens: 200, ignore_eos: true, stream: true }) });
  await stream.body.getReader().read();
  left.abort();
  await send(requests[0]);
}

// A stream that runs when SIGTERM comes is finished.
async function expect_drained(server, headers) {
  const stream = await server.post("/v1/completions",
    { prompt: "the", max_tokens: 60, ignore_eos: true, stream: true }, headers);
  const stopped = server.stop();
  assert.match(await stream.text(), /data: \[DONE\]/);
  await stopped;
}

test("over HTTP", { skip }, async () => {
  const free = await Server.start();
  const expected = await golden(free);
  await free.stop();
  const server = await Server.start("--sandbox");
  assert.match(server.log, /"event":"sandbox"/);
  await expect_served(server, {});
  assert.deepEqual(await golden(server), expected);
  expect_confined(server);
  await expect_drained(server, {});
});

test("over HTTPS with keys", { skip }, async (t) => {
  const [cert, key, keys] = ["cert.pem", "key.pem", "keys"].map((name) => join(folder, name));
  try {
    execFileSync("openssl", ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
      "-subj", "/CN=localhost", "-keyout", key, "-out", cert], { stdio: "ignore" });
  } catch {
    return t.skip("the program openssl was not found");
  }
  writeFileSync(keys, "secret-of-one one 1 role=operator\n");
  const server = await Server.start("--sandbox", "--api-keys", keys, "--tls-cert", cert, "--tls-key", key);
  const headers = { authorization: "Bearer secret-of-one" };
  assert.match(server.url, /^https:/);
  assert.ok(server.log.includes(`"readable":"${folder}"`), server.log);
  await expect_served(server, headers);
  assert.equal((await server.post("/v1/completions", requests[0][1])).status, 401);
  expect_confined(server);
  await expect_drained(server, headers);
});

test("as another user", { skip: skip || (process.getuid() !== 0 && "needs root") }, async () => {
  // A copy of the model that the user can reach.
  chmodSync(folder, 0o755);
  cpSync(model, join(folder, "model"), { recursive: true });
  const server = await Server.spawn([join(folder, "model"), "--user", "nobody", "--sandbox"]);
  const status = readFileSync(`/proc/${server.child.pid}/status`, "utf8");
  assert.doesNotMatch(status, /^[UG]id:.*\t0\b/m);
  await expect_served(server, {});
  await expect_drained(server, {});
});

test("a user that cannot be had is refused", async () => {
  const { code, out, err } = await vitrine("serve", model, "--port", "0", "--user", "no-such-user");
  assert.deepEqual([code, out], [1, ""]);
  assert.match(err, /error: --user: cannot become user 'no-such-user'/);
});
