// The engine as it works: what the page makes of the stream is what the server says of itself, and a recording
// of 256 sequences is drawn without drawing everything anew.
import assert from "node:assert/strict";
import { copyFileSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { at_moment, close, figure_json, open, slow, streams, with_server } from "./browser.mjs";
import { recording } from "./recording.mjs";

const served = with_server("--sequences", "64", "--kv-tokens", "6144", "--page-size", "16");

// Requests that arrive one after another, some of several choices, until `stop`.
function busy(server) {
  let stopped = false;
  const beginnings = ["Once upon a time there was a fox", "The sea is", "Tell me why the sky is blue, and why grass is green."];
  const worker = async (i) => {
    for (let k = 0; !stopped; ++k)
      await server.post("/v1/completions", { prompt: `${beginnings[(i + k) % 3]} ${i % 5 ? "" : k} `.repeat(1 + ((i * 7 + k) % 4)), n: 1 + ((i + k) % 4 === 0 ? 3 : 0),
        max_tokens: 20 + ((i * 13 + k * 5) % 80), ignore_eos: true, seed: i }).then((answer) => answer.text());
  };
  const all = Array.from({ length: 40 }, (_, i) => worker(i));
  return async () => ((stopped = true), await Promise.all(all));
}

const tables_of = (list) => list.map(({ id, slot, group, length, pages }) => ({ id, slot, group, length, pages }))
  .sort((a, b) => a.group - b.group || a.id - b.id);

served("the page's state is the server's, also in the middle of the work", async (server, t) => {
  if (!(await streams(server, t))) return;
  const page = await open(server, { path: "/#/engine", height: 2400 });
  await page.getByText("Now, as it happens.").waitFor();
  const stop = busy(server);
  await page.getByRole("figure", { name: "Running" }).locator("tbody tr").nth(40).waitFor({ timeout: 60000 * slow });
  let compared = 0;
  for (let i = 0; i < 4; ++i) {
    const told = await server.json("/api/snapshot?full=1");
    await at_moment(page, told.seq);
    const what = `at ${told.seq}`;
    const { group, tables } = await figure_json(page, "Pages of the KV cache");
    assert.equal(group.pages, told.pages.groups[0].pages, what);
    assert.deepEqual(group.holders, told.pages.groups[0].holders, what);
    assert.deepEqual(tables_of(tables), tables_of(told.pages.tables), what);
    const running = await figure_json(page, "Running");
    const seen = (list, id) => list.map((one) => [one[id], one.prompt ?? one.prompt_tokens, one.output ?? one.completion_tokens, one.computed]).sort((a, b) => a[0] - b[0]);
    assert.deepEqual(seen(running, "req"), seen(told.running, "id"), what);
    const queue = await figure_json(page, "Queue");
    assert.deepEqual(queue.waiting.map((q) => q.req).sort((a, b) => a - b), told.waiting.map((q) => q.id).sort((a, b) => a - b), what);
    compared += told.running.length;
    await page.evaluate(() => (location.hash = "#/engine"));
    await page.getByRole("button", { name: "Go on" }).click();
    await page.getByText("Now, as it happens.").waitFor();
  }
  assert.ok(compared > 40, `${compared} sequences were compared`);
  await stop();
  await page.getByText("No sequence runs.").waitFor();
  // What is left: the cache. And the figures of the last minute have something to say.
  const { seq } = await server.json("/api/snapshot?full=1");
  await at_moment(page, seq);
  const told = await server.json("/api/snapshot?full=1");
  const { group } = await figure_json(page, "Pages of the KV cache");
  assert.equal(group.pages, told.pages.groups[0].pages);
  const rates = await figure_json(page, "Rates");
  assert.ok(rates.itl.count > 100 && rates.itl.p50 > 0 && rates.itl.p95 >= rates.itl.p50, JSON.stringify(rates.itl));
  assert.ok(rates.ttft.count > 10 && rates.ttft.p50 > 0);
  await close(page);
});

served("time can be gone back in, by the scrubber", async (server, t) => {
  if (!(await streams(server, t))) return;
  const page = await open(server, { path: "/#/engine", height: 2400 });
  await page.getByText("Now, as it happens.").waitFor();
  await server.json("/v1/completions", { prompt: "Once", n: 4, max_tokens: 120, ignore_eos: true, seed: 1 });
  await page.getByText("No sequence runs.").waitFor();
  const scrub = page.getByRole("slider", { name: "Time" });
  const seen = new Set();
  for (const at of [900, 700, 500, 300, 100]) {
    await scrub.fill(String(at));
    await page.getByText("Paused:").waitFor();
    await page.waitForFunction((n) => Math.abs(document.querySelector(".scrub input").value - n) < 30, at);
    seen.add((await figure_json(page, "Running")).length);
  }
  assert.ok(seen.has(0) || seen.has(4), [...seen].join());
  await page.getByRole("button", { name: "Go on" }).click();
  await page.getByText("Now, as it happens.").waitFor();
  await close(page);
});

const folder = mkdtempSync(join(tmpdir(), "vitrine-"));

served("a recording of 256 sequences plays, and only what is new is drawn", async (server) => {
  const made = recording({ sequences: 256, steps: 420 });
  const file = join(folder, "made.vtr");
  writeFileSync(file, made.lines.join("\n") + "\n");
  const page = await open(server, { path: "/#/engine", height: 1000 });
  await page.getByText(/^Now, /).waitFor();
  await page.getByLabel("Recording").setInputFiles(file);
  await page.getByText("From a recording.").waitFor({ timeout: 60000 * slow });
  const same_as_made = async () => {
    const { group, tables } = await figure_json(page, "Pages of the KV cache");
    assert.equal(group.pages, made.pages.groups[0].pages);
    assert.deepEqual(group.holders, made.pages.groups[0].holders);
    assert.deepEqual(tables_of(tables), tables_of(made.pages.tables));
    assert.deepEqual((await figure_json(page, "Running")).map((q) => q.req).sort((a, b) => a - b), made.running.map((r) => r.id).sort((a, b) => a - b));
  };
  await same_as_made();
  await page.getByRole("slider", { name: "Time" }).fill("150");
  await page.waitForFunction(() => Math.abs(document.querySelector(".scrub input").value - 150) < 20);
  const fulls = () => page.evaluate(() => [...document.querySelectorAll("canvas[data-full]")].map((c) => Number(c.dataset.full)));
  await page.getByRole("button", { name: "Play" }).click();
  await page.waitForTimeout(1000);
  const before = await fulls();
  const times = await page.evaluate(() => new Promise((done) => {
    const out = [];
    const frame = (now) => (out.push(now), out.length < 180 ? requestAnimationFrame(frame) : done(out));
    requestAnimationFrame(frame);
  }));
  // In three seconds of 60 steps each: no canvas was drawn anew, however busy this machine is.
  assert.deepEqual(await fulls(), before);
  const gaps = times.slice(1).map((t, i) => t - times[i]).sort((a, b) => a - b);
  const at = (share) => gaps[Math.floor(share * (gaps.length - 1))].toFixed(1);
  console.log(`a frame took ${at(0.5)} ms at the median, ${at(0.95)} at the 95th, ${at(0.99)} at the 99th percentile`);
  await page.getByRole("button", { name: "Play" }).waitFor({ timeout: 60000 * slow });
  await same_as_made();
  // Every figure says where it is from.
  const chips = await page.locator("[role=figure] [data-provenance]").allTextContents();
  assert.ok(chips.length >= 8 && chips.every((chip) => chip === "recorded"), chips.join());
  await page.getByRole("button", { name: "Back to now" }).click();
  await page.getByText(/^Now, /).waitFor();
  await close(page);
});

served("a file is dropped on the view; one that is none is refused in words", async (server) => {
  const page = await open(server, { path: "/#/engine", height: 1000 });
  await page.getByText(/^Now, /).waitFor();
  const drop = (name, text) => page.evaluate(([name, text]) => {
    const dataTransfer = new DataTransfer();
    dataTransfer.items.add(new File([text], name));
    document.querySelector(".engine").dispatchEvent(new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true }));
  }, [name, text]);
  for (const text of ["", "not json\n", '{"event":"step"', "[1,2]\n", '{"event":"hello","epoch":"x"}\n']) {
    await drop("broken.vtr", text);
    await page.getByText("broken.vtr cannot be shown").waitFor();
    await page.getByText(/^Now, /).waitFor();
  }
  const made = recording({ sequences: 6, steps: 40 });
  await drop("small.vtr", made.lines.join("\n"));
  await page.getByText("From a recording.").waitFor();
  const rows = page.getByRole("figure", { name: "Running" }).locator("tbody tr");
  await rows.nth(made.running.length - 1).waitFor();
  assert.equal(await rows.count(), made.running.length);
  await close(page);
});

served("what the server records is what the page opens", async (server, t) => {
  if (!(await streams(server, t))) return;
  const page = await open(server, { path: "/#/engine", height: 2400 });
  await page.getByText("Now, as it happens.").waitFor();
  const saving = page.waitForEvent("download", { timeout: 60000 * slow });
  await page.getByRole("button", { name: "Record ten seconds" }).click();
  await server.json("/v1/completions", { prompt: "Once upon a time there was a fox", n: 4, max_tokens: 40, ignore_eos: true, seed: 1 });
  const file = join(folder, "recorded.vtr");
  copyFileSync(await (await saving).path(), file);
  await page.getByRole("button", { name: "Saved" }).waitFor();
  // Nothing has happened since: the end of the recording is now.
  const told = await server.json("/api/snapshot?full=1");
  const lines = readFileSync(file, "utf8").trimEnd().split("\n").map((line) => JSON.parse(line));
  assert.deepEqual(lines.slice(0, 2).map((line) => line.event), ["hello", "snapshot"]);
  assert.equal(lines.at(-1).seq, told.seq);
  await page.getByLabel("Recording").setInputFiles(file);
  await page.getByText("From a recording.").waitFor();
  const { group, tables } = await figure_json(page, "Pages of the KV cache");
  assert.equal(group.pages, told.pages.groups[0].pages);
  assert.deepEqual(group.holders, told.pages.groups[0].holders);
  assert.deepEqual(tables, []);
  assert.match(group.pages, /c/);
  // The log as it is kept begins before anybody looked: it has the steps, and no pages.
  const kept = await (await fetch(`${server.url}/api/steps/export?format=vtr`)).text();
  writeFileSync(file, kept);
  await page.getByLabel("Recording").setInputFiles(file);
  await page.getByRole("figure", { name: "Pages of the KV cache" }).waitFor({ state: "detached" });
  const steps = kept.split("\n").filter((line) => line.startsWith('{"event":"step"')).map((line) => JSON.parse(line));
  const shown = await figure_json(page, "Batch");
  assert.ok(shown.length > 10);
  assert.equal(shown.at(-1).n, steps.at(-1).n);
  assert.deepEqual(shown.at(-1).entries, steps.at(-1).entries);
  await page.getByRole("button", { name: "Back to now" }).click();
  await page.getByText("Now, as it happens.").waitFor();
  await close(page);
});
