// Signals, loading and what changes under a running server, with the real program.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { closeSync, ftruncateSync, openSync, writeSync } from "node:fs";
import { cp, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import http from "node:http";
import https from "node:https";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { model, sleep, slow, vitrine } from "./server.mjs";

const binary = process.env.VITRINE;

async function in_folder(use) {
  const folder = await mkdtemp(join(tmpdir(), "vitrine-life-"));
  try { return await use(folder); } finally { await rm(folder, { recursive: true }); }
}

async function free_port() {
  const listener = createServer().listen(0, "127.0.0.1");
  await new Promise((done) => listener.on("listening", done));
  const { port } = listener.address();
  await new Promise((done) => listener.close(done));
  return port;
}

// A server from its first moment on, not only once it is ready.
class Child {
  static async start(...args) {
    const child = new Child();
    child.port = await free_port();
    child.out = child.log = "";
    child.process = spawn(binary, ["serve", ...args, "--port", String(child.port)],
      { stdio: ["ignore", "pipe", "pipe"] });
    child.process.stdout.on("data", (bytes) => (child.out += bytes));
    child.process.stderr.on("data", (bytes) => (child.log += bytes));
    child.over = false;
    child.ended = new Promise((done) => child.process.on("close", (code, signal) => {
      child.over = true;
      done({ code, signal });
    }));
    return child;
  }

  // On a connection of its own. Rejects where there is no whole answer.
  request(path, { method = "GET", body, headers = {}, tls } = {}) {
    return new Promise((done, failed) => {
      const options = { host: "127.0.0.1", port: this.port, path, method, agent: false,
        headers: { host: `127.0.0.1:${this.port}`, ...headers } };
      const sent = (tls ? https : http).request({ ...options, ...tls }, (answer) => {
        let text = "";
        const certificate = answer.socket.getPeerCertificate?.().subject?.CN;
        answer.on("data", (bytes) => (text += bytes));
        answer.on("error", failed);
        answer.on("end", () => done({ status: answer.statusCode, headers: answer.headers, text,
          certificate }));
      });
      sent.on("error", failed);
      sent.end(body);
    });
  }

  // Until `look` says something.
  async until(look, what) {
    const end = Date.now() + 60000 * slow;
    for (;;) {
      const found = await look();
      if (found) return found;
      assert.ok(!this.over, `the server ended before ${what}:\n${this.log}`);
      assert.ok(Date.now() < end, `${what} did not come:\n${this.log}`);
      await sleep(5);
    }
  }
  ready() { return this.until(() => /^vitrine is ready: .*\n/m.test(this.out), "ready"); }
  logged(text) { return this.until(() => this.log.includes(text), text); }
  kill(signal = "SIGTERM") { this.process.kill(signal); return this.ended; }
}

// A model of zeros that takes its time to load; the file has holes and takes no room.
function write_large_model(folder) {
  const dim = 2048, ff = 8192, layers = 6, vocab = 32000, head = {};
  let at = 0;
  const add = (name, ...shape) => {
    const bytes = 2 * shape.reduce((a, b) => a * b);
    head[name] = { dtype: "BF16", shape, data_offsets: [at, at += bytes] };
  };
  add("model.embed_tokens.weight", vocab, dim);
  add("model.norm.weight", dim);
  for (let i = 0; i < layers; ++i) {
    const layer = `model.layers.${i}.`;
    add(`${layer}input_layernorm.weight`, dim);
    add(`${layer}post_attention_layernorm.weight`, dim);
    for (const one of "qkvo") add(`${layer}self_attn.${one}_proj.weight`, dim, dim);
    for (const one of ["gate", "up"]) add(`${layer}mlp.${one}_proj.weight`, ff, dim);
    add(`${layer}mlp.down_proj.weight`, dim, ff);
  }
  const text = Buffer.from(JSON.stringify(head)), size = Buffer.alloc(8);
  size.writeBigUInt64LE(BigInt(text.length));
  const file = openSync(join(folder, "model.safetensors"), "w");
  writeSync(file, size);
  writeSync(file, text);
  ftruncateSync(file, 8 + text.length + at);
  closeSync(file);
  return writeFile(join(folder, "config.json"), JSON.stringify({
    architectures: ["LlamaForCausalLM"], model_type: "llama", hidden_size: dim,
    intermediate_size: ff, num_hidden_layers: layers, num_attention_heads: 16,
    num_key_value_heads: 16, vocab_size: vocab, max_position_embeddings: 512,
    rms_norm_eps: 1e-5, rope_theta: 10000, tie_word_embeddings: true, hidden_act: "silu" }));
}

// Starts servers until one was seen while it loads.
async function start_loading(folder) {
  for (let i = 0; i < 10; ++i) {
    const child = await Child.start(folder, "--threads", "1", "--sequences", "1");
    const answer = await child.until(() => child.request("/ready").catch(() => null), "an answer");
    if (answer.status === 503) return { child, answer };
    await child.kill();
  }
  assert.fail("no server was seen while it loads");
}

test("while the model loads, requests are told so and SIGTERM ends the process", () =>
  in_folder(async (folder) => {
    await write_large_model(folder);
    const { child, answer } = await start_loading(folder);
    const state = JSON.parse(answer.text);
    assert.equal(state.status, "loading");
    assert.ok(state.progress >= 0 && state.progress <= 1 && state.bytes_total > 1e8, answer.text);
    assert.ok(Number(answer.headers["retry-after"]) >= 1);
    for (const [path, method] of [["/v1/models", "GET"], ["/metrics", "GET"], ["/api/info", "GET"],
                                  ["/v1/completions", "POST"], ["/tokenize", "POST"]]) {
      const other = await child.request(path, { method, body: "{}" });
      if ((await child.request("/ready")).status === 200) break;  // loaded meanwhile
      assert.equal(other.status, 503, path);
      assert.equal(JSON.parse(other.text).error.code, "loading");
      assert.ok(Number(other.headers["retry-after"]) >= 1);
    }
    assert.equal((await child.request("/health")).status, 200);
    await child.ready();
    assert.equal(JSON.parse((await child.request("/ready")).text).status, "ready");
    assert.deepEqual(await child.kill(), { code: 0, signal: null });

    for (const signal of ["SIGTERM", "SIGINT"]) {
      for (let i = 0; ; ++i) {
        assert.ok(i < 10, "the signal never came before the end of loading");
        const { child } = await start_loading(folder);
        const { code, signal: by } = await child.kill(signal);
        if (code === 0) continue;  // it was loaded when the signal came
        assert.equal(by, signal, child.log);
        assert.equal(child.out, "");
        break;
      }
    }
  }));

test("a load that fails ends with one line, though the port was open", () =>
  in_folder(async (folder) => {
    await write_large_model(folder);
    const child = await Child.start(folder, "--kv-tokens", String(1 << 30));
    assert.deepEqual(await child.ended, { code: 1, signal: null });
    assert.equal(child.out, "");
    assert.match(child.log, /^error: the plan needs .*\n$/);
  }));

test("the time to drain is a limit, whatever the workers do", async () => {
  const child = await Child.start(model, "--drain-seconds", "1");
  await child.ready();
  // Each keeps the one worker for a while; together far longer than the limit.
  const body = JSON.stringify({ content: "says the cat. ".repeat(1 << 20) });
  const answers = [];
  for (let i = 0; i < 30; ++i)
    answers.push(child.request("/tokenize", { method: "POST", body }).catch(() => null));
  await Promise.race(answers);
  const begin = Date.now();
  const { code, signal } = await child.kill();
  assert.ok(Date.now() - begin < (1 + 5 + 4) * 1000 * slow, `${Date.now() - begin} ms`);
  assert.equal(signal, null);
  assert.ok(code === 0 || code === 1, child.log);
  await Promise.all(answers);
});

test("SIGHUP reads the API keys again", () => in_folder(async (folder) => {
  const keys = join(folder, "keys");
  await writeFile(keys, "old-secret-of-alice alice\n");
  const child = await Child.start(model, "--api-keys", keys);
  await child.ready();
  const status = async (key) => (await child.request("/v1/models",
    { headers: { authorization: `Bearer ${key}` } })).status;
  assert.equal(await status("old-secret-of-alice"), 200);
  // A stream that began with the old key goes on to its end.
  const stream = child.request("/v1/completions", { method: "POST",
    headers: { authorization: "Bearer old-secret-of-alice" }, body: JSON.stringify(
      { prompt: [5, 6], max_tokens: 64, stream: true, ignore_eos: true }) });
  await writeFile(keys, "new-secret-of-bob bob\n");
  assert.equal(await status("new-secret-of-bob"), 401);
  child.process.kill("SIGHUP");
  await child.logged('"reloaded"');
  assert.equal(await status("new-secret-of-bob"), 200);
  assert.equal(await status("old-secret-of-alice"), 401);
  assert.match((await stream).text, /\[DONE\]/);
  for (const bad of ["", "# none\n", "key name not-a-weight\n"]) {
    await writeFile(keys, bad);
    const before = child.log.length;
    child.process.kill("SIGHUP");
    await child.until(() => child.log.slice(before).includes("cannot reload"), "the error");
    assert.equal(await status("new-secret-of-bob"), 200);
    assert.equal(await status("old-secret-of-alice"), 401);
  }
  assert.ok(!child.log.includes("secret"), "a key is in the log");
  assert.deepEqual(await child.kill(), { code: 0, signal: null });
}));

test("SIGHUP reads the certificate again", (t) => in_folder(async (folder) => {
  const certify = (name) => execFileSync("openssl", ["req", "-x509", "-newkey", "ec", "-pkeyopt",
    "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", `/CN=${name}`, "-keyout",
    join(folder, "key"), "-out", join(folder, "cert")], { stdio: "ignore" });
  try { certify("first"); } catch { return t.skip("there is no openssl"); }
  const child = await Child.start(model, "--tls-cert", join(folder, "cert"), "--tls-key",
    join(folder, "key"));
  await child.ready();
  const agent = new https.Agent({ keepAlive: true, maxSockets: 1, rejectUnauthorized: false });
  const kept = { tls: { agent } }, fresh = { tls: { agent: new https.Agent({
    rejectUnauthorized: false, maxCachedSessions: 0 }) } };
  const name = async (how) => (await child.request("/health", how)).certificate;
  assert.equal(await name(fresh), "first");
  assert.equal(await name(kept), "first");
  certify("second");
  assert.equal(await name(fresh), "first");
  child.process.kill("SIGHUP");
  await child.logged('"reloaded"');
  assert.equal(await name(fresh), "second");
  assert.equal(await name(kept), "first");  // the connection is still the old one
  await writeFile(join(folder, "cert"), "no certificate\n");
  child.process.kill("SIGHUP");
  await child.logged("cannot reload");
  assert.equal(await name(fresh), "second");
  agent.destroy();
  assert.deepEqual(await child.kill(), { code: 0, signal: null });
}));

test("a model that is overwritten while it is served is named", () => in_folder(async (folder) => {
  await cp(model, folder, { recursive: true });
  const weights = join(folder, "model.safetensors");
  const child = await Child.start(folder);
  await child.ready();
  const state = async () => JSON.parse((await child.request("/ready")).text);
  assert.deepEqual(await state(), { status: "ready" });
  const file = openSync(weights, "r+");
  writeSync(file, "{");  // the byte that is there
  closeSync(file);
  await child.logged("model file overwritten");
  await child.until(async () => (await state()).status === "degraded", "the state");
  assert.deepEqual(await state(), { status: "degraded", changed_files: ["model.safetensors"] });
  await sleep(5000);
  assert.equal(child.log.split("model file overwritten").length, 2, "once per change");
  assert.ok(child.log.includes(weights));
  // Another file of the name is no change of what is served.
  await cp(join(model, "config.json"), join(folder, "new"));
  await rename(join(folder, "new"), join(folder, "config.json"));
  await child.logged("model file replaced");
  assert.deepEqual((await state()).changed_files, ["model.safetensors"]);
  // Nor does it mend what was overwritten: the server has the old file.
  await cp(join(model, "model.safetensors"), join(folder, "new"));
  await rename(join(folder, "new"), weights);
  await child.logged("model.safetensors\",\"what\":\"another file");
  assert.deepEqual((await state()).changed_files, ["model.safetensors"]);
  assert.deepEqual(await child.kill(), { code: 0, signal: null });
}));

test("SIGTERM under load: every request is answered or told", async () => {
  const told = /"code": ?"(unavailable|shutting_down)"/;
  for (let round = 0; round < 20; ++round) {
    const child = await Child.start(model, "--drain-seconds", round % 2 ? "0" : "20");
    await child.ready();
    const outcomes = [], lost = [];
    let stop = false, answered = 0;
    const client = async (stream) => {
      while (!stop) {
        const id = `life-${round}-${Math.random()}`;
        try {
          const answer = await child.request("/v1/completions", { method: "POST",
            headers: { "x-request-id": id },
            body: JSON.stringify({ prompt: [5, 6, 7], max_tokens: 40, ignore_eos: true, stream }) });
          const whole = answer.status === 200 &&
            (stream ? /\[DONE\]/.test(answer.text) : JSON.parse(answer.text).choices.length === 1);
          answered += whole;
          if (!whole && !told.test(answer.text)) outcomes.push(`${answer.status} ${answer.text}`);
        } catch (error) {
          lost.push({ id, why: String(error.code ?? error) });
          stop ||= error.code === "ECONNREFUSED";
        }
      }
    };
    const clients = Array.from({ length: 12 }, (_, i) => client(i % 2 === 1));
    await child.until(() => answered > 0, "an answer");
    await sleep(20 * round);
    const end = await child.kill();
    stop = true;
    await Promise.all(clients);
    assert.deepEqual(end, { code: 0, signal: null }, child.log);
    assert.deepEqual(outcomes, [], `round ${round}`);
    // No connection, or one that the system had taken and nobody accepted; no request was begun.
    for (const { id, why } of lost) assert.ok(!child.log.includes(id), `${id} was cut: ${why}`);
  }
});

test("the ends of every flag's range serve, or are refused in one line", async () => {
  const { out } = await vitrine("serve", "--help");
  const flags = [...out.matchAll(/(--[\w-]+) (?:INT|NUMBER)\((>?)(\S+?)\.\.(\S+?)\)/g)];
  assert.ok(flags.length > 30, out);
  for (const [, flag, above, least, most] of flags) {
    if (flag === "--port") continue;
    for (const value of above ? [most] : [least, most]) {
      const child = await Child.start(model, flag, value);
      await child.until(() => child.over || /is ready/.test(child.out), "ready or an end");
      const { code, signal } = await child.kill();
      assert.equal(signal, null, `${flag} ${value}: ${child.log}`);
      if (child.out === "") assert.match(child.log, /^error: .*\n/m, `${flag} ${value}`);
      else assert.equal(code, 0, `${flag} ${value}: ${child.log}`);
    }
  }
});
