// Many clients at once, too many, clients that leave, clients that hardly read.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import http from "node:http";
import net from "node:net";
import { test } from "node:test";
import { Server, golden, sleep, slow } from "./server.mjs";

// For a full minute of overload: VITRINE_STRESS_SECONDS=60.
const seconds = Number(process.env.VITRINE_STRESS_SECONDS ?? 8);

const prompts = Array.from({ length: 8 }, (_, i) =>
  Array.from({ length: 5 + 40 * i }, (_, k) => 70 + ((k * (i + 3) + i) % 60)));

// A POST on a connection of its own: status, headers and the whole body.
function post(server, body) {
  return new Promise((done, failed) => {
    const request = http.request(`${server.url}/v1/completions`,
      { method: "POST", agent: false, headers: { "content-type": "application/json" } },
      (answer) => {
        let text = "";
        answer.setEncoding("utf8");
        answer.on("data", (part) => (text += part));
        answer.on("end", () => done({ status: answer.statusCode, headers: answer.headers, text }));
        answer.on("error", failed);
      });
    request.on("error", failed);
    request.end(JSON.stringify(body));
  });
}

const text_of = (sse) => sse.split("\n\n").filter((f) => f.startsWith("data: {"))
  .map((f) => JSON.parse(f.slice(6)).choices[0]?.text ?? "").join("");

function process_state(server) {
  const pid = server.child.pid;
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const field = (name) => Number(status.match(new RegExp(`^${name}:\\s+(\\d+)`, "m"))[1]);
  return { rss_kib: field("VmRSS"), threads: field("Threads"),
           descriptors: readdirSync(`/proc/${pid}/fd`).length };
}

async function pages_used(server) {
  const { pools } = await server.json("/api/snapshot");
  return pools.reduce((sum, pool) => sum + pool.used, 0);
}

test("1,024 streams at once all get their own text", async () => {
  const server = await Server.start("--sequences", "64", "--max-queue", "1024", "--log-level", "error");
  try {
    const body = (i) => ({ prompt: prompts[i % 8], max_tokens: 24 + (i % 5), seed: i % 16,
                           stream: true, ignore_eos: true });
    const alone = new Map();
    const expected = async (i) => {
      const key = `${i % 8} ${i % 5} ${i % 16}`;
      if (!alone.has(key)) alone.set(key, text_of((await post(server, body(i))).text));
      return alone.get(key);
    };
    for (let i = 0; i < 80; ++i) await expected(i);
    const before = process_state(server);
    const answers = await Promise.all(Array.from({ length: 1024 }, (_, i) => post(server, body(i))));
    for (const [i, answer] of answers.entries()) {
      assert.equal(answer.status, 200, answer.text);
      assert.ok(answer.text.endsWith("data: [DONE]\n\n"));
      assert.equal(text_of(answer.text), await expected(i), `stream ${i}`);
    }
    const after = process_state(server);
    assert.ok(after.rss_kib - before.rss_kib < 1024 * 64 * slow,
      `${after.rss_kib - before.rss_kib} KiB for 1,024 streams`);
    assert.equal(await pages_used(server), 0);
  } finally {
    await server.stop();
  }
});

test("ten times too much: only 200 and 429, a bounded queue, flat memory", async () => {
  const bound = 24;
  // A log of steps that is soon full: its memory is touched as it fills.
  const server = await Server.start("--sequences", "8", "--max-queue", String(bound), "--trace-mib", "1",
    "--log-level", "error");
  try {
    const body = { prompt: prompts[3], max_tokens: 40, ignore_eos: true };
    // What it can do, measured with as many clients as it has places.
    const start = performance.now();
    let served = 0;
    await Promise.all(Array.from({ length: 8 }, async () => {
      while (performance.now() - start < 1000) {
        await post(server, body);
        ++served;
      }
    }));
    const rate = 10 * served / ((performance.now() - start) / 1000);
    const counts = new Map(), memory = [], open = new Set();
    let waiting = 0, errors = [];
    const begin = performance.now();
    for (let sent = 0; performance.now() - begin < seconds * 1000;) {
      const due = Math.floor((performance.now() - begin) / 1000 * rate);
      for (; sent < due && open.size < 900; ++sent) {
        const one = post(server, body).then((answer) => {
          counts.set(answer.status, (counts.get(answer.status) ?? 0) + 1);
          if (answer.status === 429 && !(Number(answer.headers["retry-after"]) >= 1))
            errors.push(`Retry-After: ${answer.headers["retry-after"]}`);
        }, (error) => errors.push(String(error))).finally(() => open.delete(one));
        open.add(one);
      }
      sent = due;
      if (Math.floor((performance.now() - begin) / 250) > memory.length) {
        memory.push(process_state(server).rss_kib);
        const snapshot = await server.json("/api/snapshot");
        waiting = Math.max(waiting, snapshot.waiting.length);
      }
      await sleep(2);
    }
    await Promise.all(open);
    assert.deepEqual(errors, []);
    assert.deepEqual([...counts.keys()].sort(), [200, 429]);
    assert.ok(counts.get(429) > counts.get(200), "it was no overload");
    assert.ok(waiting <= bound, `${waiting} waited`);
    const third = Math.floor(memory.length / 3);
    const most = (part) => Math.max(...part);
    assert.ok(most(memory.slice(-third)) - most(memory.slice(third, -third)) < 8192 * slow,
      `memory: ${memory}`);
    await server.expect_idle(5000);
    assert.equal(await pages_used(server), 0);
  } finally {
    await server.stop();
  }
});

test("2,000 clients that leave at any point leave nothing behind", async () => {
  const server = await Server.start("--sequences", "16", "--max-queue", "4096", "--log-level", "error");
  try {
    const answer = await golden(server);
    const { port } = new URL(server.url);
    const leave = (i) => new Promise((done) => {
      const stream = i % 2 === 0;
      const body = JSON.stringify({ prompt: prompts[i % 8], max_tokens: 60, stream, n: 1 + (i % 3),
                                    ignore_eos: true });
      const head = `POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n` +
        `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`;
      const bytes = head + body;
      const socket = net.connect(Number(port), "127.0.0.1");
      socket.on("error", () => {});
      socket.on("close", done);
      const end = () => (i % 3 === 0 ? socket.resetAndDestroy() : socket.destroy());
      socket.on("connect", () => {
        const point = i % 10;
        if (point === 0) return end();                            // at once
        if (point < 4) {                                          // within head or body
          socket.write(bytes.slice(0, Math.floor(bytes.length * point / 4)));
          return setTimeout(end, i % 7);
        }
        socket.write(bytes);
        if (point === 4) return end();                            // right after the request
        if (point < 8) return setTimeout(end, (i * 37) % 150);    // while it waits or runs
        if (point === 8) return socket.once("data", end);         // with the first byte
        let got = 0;
        socket.on("data", (part) => (got += part.length) > 3000 && end());
        socket.on("end", end);
      });
    });
    const wave = async (from, to) => {
      for (let i = from; i < to; i += 100)
        await Promise.all(Array.from({ length: 100 }, (_, k) => leave(i + k)));
    };
    await wave(0, 200);
    await server.expect_idle(10000);
    await sleep(300);
    const before = process_state(server);
    await wave(200, 2200);
    await server.expect_idle(10000);
    await sleep(300);
    const after = process_state(server);
    assert.equal(after.threads, before.threads);
    assert.ok(Math.abs(after.descriptors - before.descriptors) <= 2,
      `${before.descriptors} descriptors before, ${after.descriptors} after`);
    assert.ok(after.rss_kib - before.rss_kib < 16384 * slow);
    assert.equal(await pages_used(server), 0);
    assert.deepEqual(await golden(server), answer);
  } finally {
    await server.stop();
  }
});

test("readers that hardly read hold nobody up", async () => {
  const server = await Server.start("--sequences", "8", "--stream-backlog", "64", "--write-timeout",
    "3", "--log-level", "error");
  try {
    const { port } = new URL(server.url);
    // Answers of some megabytes, read at about a byte a second: far more than buffers hold.
    const body = JSON.stringify({ prompt: prompts[1], max_tokens: 1900, stream: true, logprobs: 20,
                                  ignore_eos: true });
    const stalled = Array.from({ length: 8 }, () => {
      const socket = net.connect({ port: Number(port), host: "127.0.0.1", readableHighWaterMark: 1 });
      socket.on("error", () => {});
      socket.write(`POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: ` +
        `${body.length}\r\n\r\n${body}`);
      socket.pause();
      return socket;
    });
    // All places are taken by them until they stall; then others get on.
    let paused = 0;
    for (let i = 0; i < 200 * slow && paused === 0; ++i) {
      await sleep(50);
      const { running, waiting } = await server.json("/api/snapshot");
      paused = [...running, ...waiting].filter((one) => one.state === "paused").length;
    }
    assert.ok(paused > 0, "no sequence paused");
    const answers = await Promise.all(Array.from({ length: 16 }, (_, i) =>
      post(server, { prompt: prompts[i % 8], max_tokens: 30, ignore_eos: true })));
    for (const answer of answers) assert.equal(answer.status, 200, answer.text);
    // In the end they are dropped.
    await server.expect_idle(15000);
    assert.equal(await pages_used(server), 0);
    for (const socket of stalled) socket.destroy();
  } finally {
    await server.stop();
  }
});
