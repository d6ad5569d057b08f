// How the page reads a stream: it goes on where it was cut, counts what it lost, notices another process, closes
// while nobody looks. The stream is made here, so that all of this happens at will; all else is the real server's.
import assert from "node:assert/strict";
import http from "node:http";
import { after } from "node:test";
import { close, figure_json, open, slow, with_server } from "./browser.mjs";
import { recording } from "./recording.mjs";

const served = with_server();
const made = recording({ sequences: 8, steps: 3000, ms: 20 });
const events = made.lines.slice(2).map((line) => JSON.parse(line));
const at_ms = (event) => ((event.at_ns ?? event.start_ns + event.wall_ns) - 1e9) / 1e6;

// A server before `to` whose engine is the recording, begun when the first stream was opened.
class Fake {
  streams = []; // of each: what it was asked from, and whether it is open
  epoch = "one";
  resumes = true;
  status = 200;
  begin(to) {
    this.server = http.createServer((request, response) => {
      const url = new URL(request.url, to);
      if (url.pathname === "/api/trace") return this.stream(url, request, response);
      if (url.pathname === "/api/tree") return response.writeHead(200, { "content-type": "application/json" }).end('{"nodes":[]}');
      const onward = http.request(to + request.url, { method: request.method, headers: request.headers }, (answer) => {
        if (url.search !== "?full=1") return void (response.writeHead(answer.statusCode, answer.headers), answer.pipe(response));
        let text = "";
        answer.on("data", (bytes) => (text += bytes)).on("end", () =>
          response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ ...JSON.parse(text), seq: 1 })));
      });
      onward.on("error", () => response.destroy());
      request.pipe(onward);
    });
    return new Promise((done) => this.server.listen(0, "127.0.0.1", () => ((this.url = `http://127.0.0.1:${this.server.address().port}`), done())));
  }
  stream(url, request, response) {
    const from = Number(url.searchParams.get("from") ?? 0), one = { from, open: true, cut: () => response.destroy() };
    if (this.status !== 200) return response.writeHead(this.status, { "content-type": "application/json" }).end("{}");
    this.streams.push(one);
    response.writeHead(200, { "content-type": "text/event-stream" });
    this.began ??= Date.now();
    const tell = (event, id, data) => response.write(`event: ${event}\nid: ${id}\ndata: ${JSON.stringify(data)}\n\n`);
    tell("hello", 0, { schema: 1, epoch: this.epoch, now_ns: 1e9, now_unix_ns: 0, model: "x", viewer: { name: "", role: "operator" } });
    let seq = from;
    if (from === 0 || !this.resumes) {
      const snapshot = made.snapshots.findLast((s) => (s.now_ns - 1e9) / 1e6 <= Date.now() - this.began) ?? { ...JSON.parse(made.lines[1]), n: -1 };
      if (from > 0) (tell("gap", 0, { from, to: snapshot.seq }), (one.gap = snapshot));
      tell("snapshot", snapshot.seq, { ...snapshot, epoch: this.epoch });
      seq = snapshot.seq;
    }
    const timer = setInterval(() => {
      for (; events[seq] && at_ms(events[seq]) <= Date.now() - this.began; ++seq) tell(events[seq].event, events[seq].seq, events[seq]);
    }, 20);
    response.on("close", () => (clearInterval(timer), (one.open = false)));
  }
  async until(what) {
    for (let i = 0; i < 600 * slow; ++i) {
      if (what(this)) return;
      await new Promise((done) => setTimeout(done, 50));
    }
    assert.fail(`${what}: ${JSON.stringify(this.streams.map(({ from, open }) => [from, open]))}`);
  }
}
const fakes = [];
after(() => fakes.forEach((fake) => (fake.server.closeAllConnections(), fake.server.close())));
async function watching(server, wanted = "Now, as it happens.") {
  const fake = new Fake();
  fakes.push(fake);
  if (wanted !== "Now, as it happens.") fake.status = 429;
  await fake.begin(server.url);
  const page = await open(fake, { path: "/#/engine", height: 1400 });
  await page.getByText(wanted).waitFor();
  return { fake, page };
}
const numbers = async (page) => (await figure_json(page, "Batch")).map((step) => step.n);
const gaps = (list) => list.slice(1).map((n, i) => n - list[i] - 1).filter((n) => n > 0);
const well = (page) => ((page.problems = page.problems.filter((p) => !/ERR_|Failed to load/.test(p))), close(page));

served("a stream that is cut goes on where it was", async (server) => {
  const { fake, page } = await watching(server);
  await page.getByRole("figure", { name: "Running" }).locator("tbody tr").nth(5).waitFor();
  fake.streams[0].cut();
  await fake.until((f) => f.streams.length === 2);
  assert.ok(fake.streams[1].from > 0);
  await page.getByText("Now, as it happens.").waitFor();
  await page.waitForTimeout(500);
  assert.deepEqual(gaps(await numbers(page)), []);
  await well(page);
});

served("what was lost is hatched and counted", async (server) => {
  const { fake, page } = await watching(server);
  await page.getByRole("figure", { name: "Running" }).locator("tbody tr").nth(5).waitFor();
  fake.resumes = false;
  fake.status = 503;
  fake.streams[0].cut();
  await page.getByText("The stream is interrupted").waitFor();
  await page.waitForTimeout(600);
  const last = (await numbers(page)).at(-1);
  fake.status = 200;
  await fake.until((f) => f.streams.length === 2);
  await page.locator(".batch [data-field='step.lost']").first().waitFor();
  await page.getByRole("button", { name: "Pause" }).click();
  await page.getByText("Paused:").waitFor();
  const lost = fake.streams[1].gap.n - last;
  assert.ok(lost > 10, `${lost}`);
  assert.equal(Number((await page.locator(".batch .says [data-field='step.lost']").textContent()).match(/\d+/)[0]), lost);
  assert.deepEqual(gaps(await numbers(page)), [lost]);
  // In time it is a hole and no zeros; every figure of steps says how many it lacks.
  const { rates, holes } = await figure_json(page, "Rates");
  assert.deepEqual(holes.map((h) => h.lost), [lost]);
  assert.ok(holes[0].to - holes[0].from > 5e8, JSON.stringify(holes));
  const inside = rates.filter((r) => r.at - 5e8 >= holes[0].from && r.at <= holes[0].to);
  assert.ok(inside.length > 0 && inside.every((r) => r.decode === null && r.prefill === null && r.running === null && r.kv === null), JSON.stringify(rates));
  assert.ok(rates.every((r) => r.decode !== 0), "the engine never stood still");
  for (const name of ["Rates", "Parts of a step", "Roofline"]) {
    const told = page.getByRole("figure", { name }).locator("[data-field='step.lost']").first();
    await told.scrollIntoViewIfNeeded();
    assert.equal(Number((await told.textContent()).match(/\d+/)[0]), lost, name);
  }
  // The hole is hatched and has no curve.
  const seen = await page.evaluate(([from, to, newest, count]) => {
    const canvas = document.querySelectorAll(".rates canvas")[1], g = canvas.getContext("2d"), span = count <= 30 ? 15e9 : count <= 60 ? 30e9 : 60e9;
    const x = (t) => Math.round(canvas.width * (1 - (newest - t) / span)), out = { gold: 0, grey: 0, clear: 0 };
    const { data } = g.getImageData(x(from) + 8, 2, Math.max(1, x(to) - x(from) - 16), canvas.height - 6);
    for (let i = 0; i < data.length; i += 4)
      data[i + 3] < 30 ? ++out.clear : data[i] - data[i + 2] > 60 ? ++out.gold : ++out.grey;
    return out;
  }, [holes[0].from, holes[0].to, rates.at(-1).at, rates.length]);
  assert.ok(seen.gold === 0 && seen.grey > 20 && seen.clear > seen.grey, JSON.stringify(seen));
  await well(page);
});

served("what happened while the tab was hidden and is gone is a hole, not a rest", async (server) => {
  const { fake, page } = await watching(server);
  const hide = (hidden) => page.evaluate((value) => {
    Object.defineProperty(document, "hidden", { configurable: true, value });
    document.dispatchEvent(new Event("visibilitychange"));
  }, hidden);
  await page.getByRole("figure", { name: "Running" }).locator("tbody tr").nth(5).waitFor();
  fake.resumes = false;
  await hide(true);
  await fake.until((f) => !f.streams[0].open);
  await page.waitForTimeout(2500);
  await hide(false);
  await page.locator(".rates .says [data-field='step.lost']").waitFor();
  const { rates, holes } = await figure_json(page, "Rates");
  assert.equal(holes.length, 1);
  assert.ok(holes[0].to - holes[0].from > 2e9 && holes[0].lost > 100, JSON.stringify(holes));
  assert.ok(rates.every((r) => r.decode !== 0), JSON.stringify(rates.map((r) => r.decode)));
  await well(page);
});

served("figures that stand still say how old they are", async (server) => {
  const { fake, page } = await watching(server);
  await page.getByRole("figure", { name: "Running" }).locator("tbody tr").nth(5).waitFor();
  fake.status = 503;
  fake.streams[0].cut();
  await page.getByText("The stream is interrupted").waitFor();
  const age = page.getByRole("figure", { name: "Batch" }).locator("[data-field='page.age']");
  await age.waitFor();
  const seconds = async () => parseFloat((await age.textContent()).replace("ms", ""));
  const before = await seconds();
  await page.waitForTimeout(3500 * slow);
  assert.ok((await seconds()) >= before + 2, `${before} and ${await seconds()}`);
  assert.equal(await page.getByRole("figure", { name: "Batch" }).evaluate((f) => getComputedStyle(f).opacity), "1");
  fake.status = 200;
  await page.getByText("Now, as it happens.").waitFor();
  await age.waitFor({ state: "detached" });
  await well(page);
});

served("another process is noticed, and nothing of the one before is left", async (server) => {
  const { fake, page } = await watching(server);
  await page.getByRole("figure", { name: "Running" }).locator("tbody tr").nth(5).waitFor();
  fake.epoch = "two";
  fake.began = Date.now();
  fake.streams[0].cut();
  await page.getByText("The server was restarted.").waitFor();
  // It was asked to go on, which means nothing to it; then anew.
  await fake.until((f) => f.streams.length === 3);
  assert.equal(fake.streams[2].from, 0);
  await page.getByText("Now, as it happens.").waitFor();
  await page.waitForFunction(() => document.querySelectorAll(".running tbody tr").length > 5);
  assert.deepEqual(gaps(await numbers(page)), []);
  await well(page);
});

served("a hidden tab closes its stream, and takes it up again", async (server) => {
  const { fake, page } = await watching(server);
  const hide = (hidden) => page.evaluate((value) => {
    Object.defineProperty(document, "hidden", { configurable: true, value });
    document.dispatchEvent(new Event("visibilitychange"));
  }, hidden);
  await page.getByRole("figure", { name: "Running" }).locator("tbody tr").nth(5).waitFor();
  await hide(true);
  await fake.until((f) => !f.streams[0].open);
  await hide(false);
  await fake.until((f) => f.streams.length === 2);
  assert.ok(fake.streams[1].from > 0);
  await well(page);
});

served("a seventeenth page asks twice a second instead", async (server) => {
  const { page } = await watching(server, "Now, asked for twice a second.");
  await server.json("/v1/completions", { prompt: "Once", max_tokens: 8, ignore_eos: true });
  await page.getByText("The last 8 steps took").waitFor();
  await well(page);
});
