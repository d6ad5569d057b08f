// Two keys on one server: what one learns of the other, and what it leaves it.
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Server, sleep, slow } from "./server.mjs";

const keys = `sk-ann ann
sk-bob bob
sk-ops ops role=operator
sk-few few rpm_limit=2 max_parallel_requests=1
`;

async function with_server(flags, run) {
  const folder = await mkdtemp(join(tmpdir(), "vitrine-keys-"));
  await writeFile(join(folder, "keys"), keys);
  const server = await Server.start("--api-keys", join(folder, "keys"), ...flags);
  try {
    await run(server);
  } finally {
    await server.stop();
    await rm(folder, { recursive: true });
  }
}

const as = (key, more = {}) => ({ authorization: `Bearer sk-${key}`, ...more });
const complete = async (server, key, body, headers) => {
  const answer = await server.post("/v1/completions", { max_tokens: 1, ...body }, as(key, headers));
  return { status: answer.status, headers: answer.headers, body: await answer.json() };
};

// Known tokens and a filler; the answer may say which token stood there instead.
async function recover(server, key, length) {
  const known = [];
  while (known.length < length) {
    const prompt = [...known, ...Array(length + 8 - known.length).fill(5)];
    const { body } = await complete(server, key, { prompt, vitrine: { timings: true } });
    const { there } = body.vitrine.choices[0].cache;
    if (there === undefined) break;
    known.push(there);
  }
  return known;
}

test("one key cannot recover another's prompt", async () => {
  const secret = Array.from({ length: 65 }, (_, i) => 10 + ((i * 7) % 23));
  await with_server([], async (server) => {
    await complete(server, "ann", { prompt: secret });
    assert.deepEqual(await recover(server, "bob", 32), []);
    for (const salt of ["3:ann", "ann", "0:", "\u0000ann"]) {
      const { body } = await complete(server, "bob", { prompt: secret, cache_salt: salt });
      assert.equal(body.usage.prompt_tokens_details.cached_tokens, 0, salt);
    }
    const own = await complete(server, "ann", { prompt: secret });
    assert.equal(own.body.usage.prompt_tokens_details.cached_tokens, 64);
  });
  await with_server(["--share-cache"], async (server) => {
    assert.match(server.log, /keys share the cache.*can find out what others sent/);
    await complete(server, "ann", { prompt: secret });
    assert.deepEqual(await recover(server, "bob", 32), secret.slice(0, 32), "the attack itself works");
  });
});

test("no GET endpoint tells a key about another", async () => {
  await with_server(["--sequences", "4"], async (server) => {
    const paths = ["/health", "/ready", "/metrics", "/v1/models", "/v1/models/x", "/api/info", "/api/snapshot",
                   "/api/requests", "/api/requests/1", "/api/requests/ann-label", "/api/steps", "/api/steps/0",
                   "/api/pages"];
    const look = async (key, path) => {
      const answer = await fetch(server.url + path, { headers: as(key) });
      const text = (await answer.text()).replace(/"uptime_s":[^,}]*/, "");
      return { status: answer.status, text };
    };
    const before = new Map();
    for (const path of paths) before.set(path, await look("bob", path));
    const stop = new AbortController();
    const running = fetch(`${server.url}/v1/completions`, {
      method: "POST", signal: stop.signal, headers: as("ann", { "x-request-id": "ann-label" }),
      body: JSON.stringify({ prompt: [11, 12, 13], n: 16, max_tokens: 100000, ignore_eos: true }),
    }).catch(() => {});
    let all = "";
    for (let i = 0; i < 100 * slow && !all.includes("ann-label"); ++i) {
      await sleep(20);
      all = (await look("ops", "/api/snapshot")).text;
    }
    assert.match(all, /ann-label/, "an operator sees it");
    for (const path of paths) assert.deepEqual(await look("bob", path), before.get(path), path);
    assert.equal((await look("bob", "/metrics")).status, 403);
    assert.equal((await look("ops", "/metrics")).status, 200);
    stop.abort();
    await running;
    const { body } = await complete(server, "bob", { prompt: [9], vitrine: { timings: true } });
    const account = body.vitrine.choices[0];
    for (const field of ["id", "batch_mean", "batch_max", "weight_bytes"])
      assert.equal(account[field], undefined, field);
    for (const path of ["/api/requests", "/api/snapshot"])
      assert.doesNotMatch((await look("bob", path)).text, /ann/);
  });
});

test("a key has a floor of priority and limits of its own", async () => {
  await with_server([], async (server) => {
    const refused = await complete(server, "ann", { prompt: [9], priority: -1000 });
    assert.equal(refused.status, 400);
    assert.match(refused.body.error.message, /priority: found -1000, allowed whole numbers from 0 to 1000/);
    assert.equal((await complete(server, "ops", { prompt: [9], priority: -1000 })).status, 200);
    for (const left of ["1", "0"]) {
      const { status, headers } = await complete(server, "few", { prompt: [9] });
      assert.equal(status, 200);
      assert.equal(headers.get("x-ratelimit-remaining-requests"), left);
    }
    const over = await complete(server, "few", { prompt: [9] });
    assert.equal(over.status, 429);
    assert.equal(over.body.error.code, "rate_limit_exceeded");
    assert.match(over.body.error.message, /rpm_limit.*found 3 .*allowed 2/);
    assert.ok(Number(over.headers.get("retry-after")) >= 10);
    assert.equal((await complete(server, "ann", { prompt: [9] })).status, 200);
  });
});

// That many tokens, which no earlier prompt began with.
let prompts = 0;
const fresh = (length) => {
  const number = ++prompts;
  return Array.from({ length }, (_, k) => 4 + (k < 3 ? (number >> (k * 5)) & 31 : (k * 7) % 50));
};

// The median time to the first token.
async function first_token(server, times) {
  const taken = [];
  for (let i = 0; i < times; ++i) {
    const start = performance.now();
    const answer = await server.post("/v1/completions",
      { prompt: fresh(1000), max_tokens: 2, stream: true, ignore_eos: true },
      as("bob"));
    assert.equal(answer.status, 200, "there is always room for a polite key");
    const reader = answer.body.getReader();
    await reader.read();
    taken.push(performance.now() - start);
    while (!(await reader.read()).done);
  }
  return taken.sort((a, b) => a - b)[times >> 1];
}

for (const [name, { length, ...greedy }] of [
  ["many choices", { length: 3, n: 128, max_tokens: 400 }],
  ["long outputs", { length: 3, max_tokens: 1900 }],
  ["long prompts", { length: 1900, max_tokens: 2 }],
  // Each takes a worker 30 ms or more.
  ["new patterns", { length: 3, max_tokens: 2, ignore_eos: false, pattern: true }],
])
  test(`a polite key's first token beside ${name}`, async () => {
    await with_server(["--sequences", "8", "--max-queue", "256"], async (server) => {
      await first_token(server, 3);
      const alone = await first_token(server, 9);
      let over = false, patterns = 0;
      const flood = async () => {
        while (!over) {
          const { pattern, ...body } = { prompt: fresh(length), ignore_eos: true, ...greedy };
          if (pattern) body.regex = `([a-z]{1,60}[0-9]){1,30}|${"x".repeat(++patterns)}`;
          const { status } = await complete(server, "ann", body);
          if (status === 429) await sleep(20);
        }
      };
      const floods = Array.from({ length: 24 }, flood);
      await sleep(500);
      const beside = await first_token(server, 9);
      over = true;
      await Promise.all(floods);
      // Three times, and what a busy machine of few cores adds beside the engine.
      assert.ok(beside <= 3 * alone + 150 * slow, `${alone} ms alone, ${beside} ms beside ${name}`);
    });
  });
