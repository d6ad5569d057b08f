// The real server as a child process, and plain requests to it.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { after } from "node:test";
import { fileURLToPath } from "node:url";

const binary = process.env.VITRINE;
assert.ok(binary, "the environment variable VITRINE must be the path of the program");

export const model = fileURLToPath(new URL("model", import.meta.url));
// For every server, as well as what a test asks for.
const flags = (process.env.VITRINE_FLAGS ?? "").split(" ").filter(Boolean);
// How many times longer than usual things may take.
export const slow = Number(process.env.VITRINE_SLOW ?? 1);
export const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

// A server that a failed test left behind would keep this process.
const servers = new Set();
const end_all = () => servers.forEach((child) => child.kill("SIGKILL"));
after(() => setTimeout(end_all, 10000).unref());  // well after the hooks of the tests

// Runs `vitrine args...` to its end.
export function vitrine(...args) {
  return new Promise((done, failed) => {
    const child = spawn(binary, args, { stdio: ["ignore", "pipe", "pipe"] });
    let out = "", err = "";
    child.stdout.on("data", (bytes) => (out += bytes));
    child.stderr.on("data", (bytes) => (err += bytes));
    child.on("error", failed);
    child.on("close", (code, signal) => done({ code, signal, out, err }));
  });
}

export class Server {
  // `vitrine serve` with these flags, once it says that it is ready.
  static async start(...flags) { return Server.spawn([model, ...flags]); }

  // On what `args` say, or on the built-in model, from a folder of no importance.
  static async spawn(args) {
    const server = new Server();
    server.child = spawn(binary, ["serve", ...(args.includes("--port") ? [] : ["--port", "0"]), ...flags, ...args],
      { stdio: ["ignore", "pipe", "pipe"], cwd: "/" });
    servers.add(server.child);
    server.child.on("close", () => servers.delete(server.child));
    server.log = "";
    server.child.stderr.on("data", (bytes) => (server.log = (server.log + bytes).slice(-20000)));
    server.ended = new Promise((done) =>
      server.child.on("close", (code, signal) => done({ code, signal })));
    server.out = "";
    server.url = await new Promise((ready, failed) => {
      server.child.on("error", failed);
      server.child.on("close", () => failed(new Error(`the server ended:\n${server.log}`)));
      server.child.stdout.on("data", (bytes) => {
        server.out += bytes;
        const found = server.out.match(/^vitrine is ready: (https?:\/\/\S+).*\n/m);
        if (found) ready(found[1].replace(/\/$/, ""));
      });
    });
    return server;
  }

  // By SIGTERM; whatever happened before, the server has to end well.
  async stop() {
    this.child.kill("SIGTERM");
    const { code, signal } = await this.ended;
    assert.deepEqual({ code, signal }, { code: 0, signal: null }, this.log);
  }

  get base() { return `${this.url}/v1`; }

  // `body` may be a string, to be sent as it is.
  async post(path, body, headers = {}) {
    return fetch(this.url + path, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: typeof body === "string" || body instanceof Uint8Array ? body : JSON.stringify(body),
    });
  }

  async json(path, body) {
    const answer = await (body === undefined ? fetch(this.url + path) : this.post(path, body));
    const text = await answer.text();
    assert.equal(answer.status, 200, `${path}: ${text}`);
    return JSON.parse(text);
  }

  async model_name() { return (await this.json("/v1/models")).data[0].id; }

  // Nothing runs or waits, within `ms`.
  async expect_idle(ms) {
    const until = Date.now() + ms * slow;
    for (;;) {
      const { running, waiting } = await this.json("/api/snapshot");
      if (running.length === 0 && waiting.length === 0) return;
      assert.ok(Date.now() < until,
        `after ${ms * slow} ms ${running.length} run and ${waiting.length} wait`);
      await sleep(10);
    }
  }

  // The ended sequences of the request with this x-request-id: one per choice.
  async ended_of(id) {
    const { requests } = await this.json(`/api/requests/${id}`);
    return requests.filter((one) => one.state === "ended");
  }
}

// A request whose answer must never change: everything that is not a name or a time.
export async function golden(server) {
  const answer = await server.json("/v1/completions", {
    prompt: [1, 70, 71, 72, 90, 91, 92, 37, 73], max_tokens: 24, temperature: 0, logprobs: 3,
    ignore_eos: true,
  });
  assert.equal(answer.usage.completion_tokens, 24);
  return answer.choices;
}

// A part of `text` that crosses a token's end and does not occur before; null when there is none.
export function stop_in(text) {
  for (let at = 8; at + 3 < text.length; ++at) {
    const part = text.slice(at, at + 3);
    if (/^[a-z .]{3}$/.test(part) && text.indexOf(part) === at) return part;
  }
  assert.fail(`no place to stop in: ${text}`);
}

export const messages = [
  { role: "system", content: "You sit on the mat." },
  { role: "user", content: "Hello world, says the cat." },
];
