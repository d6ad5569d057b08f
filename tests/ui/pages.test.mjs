// Pages of the KV cache: four choices of one prompt share its full pages and copy the one they write to; every
// cell of the map has the colour of its page; block tables are the API's.
import assert from "node:assert/strict";
import { at_moment, close, figure_json, open, slow, streams, themes, with_server } from "./browser.mjs";

const page_size = 16;
const served = with_server("--page-size", String(page_size), "--sequences", "8");

// What the stream says of pages until `done`. `opened` is called once it says something.
async function operations(server, done, opened) {
  const stop = new AbortController(), out = [];
  const answer = await fetch(`${server.url}/api/trace`, { signal: stop.signal });
  assert.equal(answer.status, 200);
  let rest = "";
  try {
    for await (const bytes of answer.body) {
      rest += Buffer.from(bytes).toString("latin1");
      for (let at; (at = rest.indexOf("\n\n")) >= 0; rest = rest.slice(at + 2)) {
        opened();
        const data = rest.slice(0, at).split("\n").find((line) => line.startsWith("data: "));
        const json = data ? JSON.parse(data.slice(6)) : {};
        if (Array.isArray(json.pages)) out.push(...json.pages);
        if (done(json, out)) return out;
      }
    }
  } finally {
    stop.abort();
  }
  return out;
}

async function four_choices(server) {
  // A prompt of two full pages and a bit.
  const { tokens } = await server.json("/tokenize", { content: "Once upon a time there was an old house by the sea, and in it lived a man with a dog. ".repeat(4), add_special: false });
  const prompt = tokens.slice(0, 2 * page_size + 5);
  let ops;
  await new Promise((opened) => (ops = operations(server, (json) => json.reason !== undefined && json.account !== undefined, opened)));
  const stop = new AbortController();
  const running = fetch(`${server.url}/v1/completions`, { method: "POST", signal: stop.signal,
    body: JSON.stringify({ prompt, n: 4, max_tokens: 1500, ignore_eos: true, seed: 3, cache_salt: String(Math.random()) }) }).catch(() => {});
  return { ops, stop: async () => (stop.abort(), await running) };
}

// Every page's pixel against the colour of its state.
const wrong_cells = (page, letters) => page.evaluate((letters) => {
  const canvas = document.querySelector("canvas.cells"), g = canvas.getContext("2d");
  const side = Number(canvas.dataset.side), columns = Number(canvas.dataset.columns);
  const colour = (name) => {
    const probe = document.createElement("i");
    probe.style.color = `var(--${name})`;
    document.body.append(probe);
    const out = getComputedStyle(probe).color.match(/\d+/g).slice(0, 3).map(Number);
    probe.remove();
    return out;
  };
  const expected = { ".": colour("line"), c: colour("cached"), u: colour("decode") };
  const { data, width } = g.getImageData(0, 0, canvas.width, canvas.height), out = [];
  const size = side - (side > 4 ? Math.max(1, Math.round(devicePixelRatio)) : 0);
  [...letters].forEach((letter, i) => {
    const x = (i % columns) * side, y = Math.floor(i / columns) * side + size - 1, at = 4 * (y * width + x);
    const found = [...data.subarray(at, at + 3)];
    if (found.some((value, k) => Math.abs(value - expected[letter][k]) > 2)) out.push(`page ${i}: ${letter} is ${found}, not ${expected[letter]}`);
  });
  return out;
}, letters);

for (const theme of themes)
  served(`four choices: full pages are held by four, three copy (${theme})`, async (server, t) => {
    if (!(await streams(server, t))) return;
    const page = await open(server, { path: "/#/engine", height: 2400, theme });
    await page.getByText("Now, as it happens.").waitFor();
    const work = await four_choices(server);
    await page.getByRole("figure", { name: "Running" }).locator("tbody tr").nth(3).waitFor();
    let told;
    for (;;) {
      told = await server.json("/api/snapshot?full=1");
      if (told.running.length === 4 && told.running.every((r) => r.completion_tokens > 2 * page_size)) break;
    }
    await at_moment(page, told.seq);
    const { group, tables } = await figure_json(page, "Pages of the KV cache");
    assert.equal(tables.length, 4);
    for (const index of [0, 1]) {
      const pages = new Set(tables.map((t) => t.pages[index]));
      assert.equal(pages.size, 1, `page ${index} of the prompt`);
      assert.equal(group.holders[[...pages][0]], 4);
    }
    assert.equal(new Set(tables.map((t) => t.pages[2])).size, 4, "the page that was written to");
    assert.equal(group.pages, told.pages.groups[0].pages);
    assert.deepEqual(await wrong_cells(page, group.pages), []);

    // By keyboard: the first page of the prompt has four holders.
    const map = page.getByRole("slider", { name: "Page", exact: true }), shared = tables[0].pages[0];
    await map.focus();
    await map.press("Home");
    for (let i = 0; i < shared; ++i) await map.press("ArrowRight");
    await page.locator(`[role=slider][aria-label=Page][aria-valuetext="page ${shared}, used, 4 holders"]`).waitFor();
    await page.waitForFunction((to) => new URLSearchParams(location.hash.split("?")[1]).get("page") === to, `0:${shared}`);

    // The block tables as a table are the API's.
    const figure = page.getByRole("figure", { name: "Block tables" });
    await figure.getByRole("button", { name: "Table", exact: true }).click();
    const shown = Object.fromEntries(await figure.locator("tbody tr").evaluateAll((rows) => rows.map((row) =>
      [row.children[0].textContent.slice(1), [...row.children[2].querySelectorAll(".num")].map((n) => Number(n.textContent))])));
    assert.deepEqual(shown, Object.fromEntries(told.pages.tables.map((t) => [t.id, t.pages])));
    await work.stop();
    const ops = await work.ops;
    assert.equal(ops.filter(([op]) => op === "copy").length, 3);
    await close(page);
  });

served("the map follows what changes, cell by cell, to the end", async (server, t) => {
  if (!(await streams(server, t))) return;
  const page = await open(server, { path: "/#/engine", height: 2400 });
  await page.getByText("Now, as it happens.").waitFor();
  await Promise.all([1, 2, 3].map((seed) => server.json("/v1/completions",
    { prompt: `${seed} Tell me why the sea is salt. `.repeat(seed), n: 2, max_tokens: 60, ignore_eos: true, seed })));
  await page.getByText("No sequence runs.").waitFor();
  const told = await server.json("/api/snapshot?full=1");
  await at_moment(page, told.seq);
  assert.deepEqual(await wrong_cells(page, told.pages.groups[0].pages), []);
  assert.ok(told.pages.groups[0].pages.includes("c"));
  await close(page);
});

// Cells of the map that have an outline of ink all around.
const outlined = (page, among) => page.evaluate((among) => {
  const canvas = document.querySelector("canvas.over"), g = canvas.getContext("2d"), cells = document.querySelector("canvas.cells");
  const side = Number(cells.dataset.side), columns = Number(cells.dataset.columns), { data, width } = g.getImageData(0, 0, canvas.width, canvas.height);
  return among.filter((page) => {
    const x = (page % columns) * side, y = Math.floor(page / columns) * side;
    return [[x + 1, y + 1], [x + side - 2, y + 1], [x + 1, y + side - 2]].every(([x, y]) => data[4 * (y * width + x) + 3] > 100);
  });
}, among);

served("the current request is marked: its rows, its places, its pages", async (server, t) => {
  if (!(await streams(server, t))) return;
  const page = await open(server, { path: "/#/engine", height: 2400 });
  await page.getByText("Now, as it happens.").waitFor();
  const stop = new AbortController();
  const long = (prompt, n) => fetch(`${server.url}/v1/completions`, { method: "POST", signal: stop.signal,
    body: JSON.stringify({ prompt, n, max_tokens: 1500, ignore_eos: true, seed: 3, cache_salt: prompt }) }).catch(() => {});
  const work = [long("The sea is", 2), long("Once", 2)];
  const rows = page.getByRole("figure", { name: "Running" }).locator("tbody tr");
  await rows.nth(3).waitFor();
  const told = await server.json("/api/snapshot?full=1"), { label } = told.running[0];
  const mine = told.running.filter((r) => r.label === label).map((r) => r.id);
  assert.equal(mine.length, 2);
  await page.evaluate((to) => (location.hash = `#/engine?req=${to}`), label);
  const marked = page.locator(".running tr[aria-current=true]");
  await marked.nth(1).waitFor();
  assert.deepEqual((await marked.locator("a").allTextContents()).map((text) => Number(text.slice(1))).sort((a, b) => a - b), mine.sort((a, b) => a - b));
  await page.getByRole("figure", { name: "Batch" }).getByText("the current request").waitFor();
  assert.equal(await page.locator(".row[aria-current=true]").count(), 2);
  await page.getByRole("button", { name: "Pause" }).click();
  await page.getByText("Paused:").waitFor();
  const { tables, group } = await figure_json(page, "Pages of the KV cache");
  const held = [...new Set(tables.filter((t) => mine.includes(t.id)).flatMap((t) => t.pages))].sort((a, b) => a - b);
  const all = [...group.pages].flatMap((letter, i) => (letter === "u" ? [i] : []));
  await page.waitForTimeout(300 * slow);
  assert.deepEqual(await outlined(page, all), held);
  stop.abort();
  await Promise.all(work);
  await close(page);
});

served("what is selected is in the address, and there again after a reload; a page tells its tokens", async (server, t) => {
  if (!(await streams(server, t))) return;
  const page = await open(server, { path: "/#/engine", height: 2400 });
  await page.getByText("Now, as it happens.").waitFor();
  const length = await page.evaluate(() => history.length);
  await server.json("/v1/completions", { prompt: "A lamp in the window of the old house. ".repeat(4), max_tokens: 40, ignore_eos: true, vitrine: { record: true } });
  await server.json("/v1/completions", { prompt: "Nobody may read what this says of us. ".repeat(4), max_tokens: 40, ignore_eos: true, cache_salt: "x" });
  await page.getByText("No sequence runs.").waitFor();
  const query = () => Object.fromEntries(new URLSearchParams(new URL(page.url()).hash.split("?")[1]));
  const grid = page.getByRole("slider", { name: "Step of the engine" });
  await grid.focus();
  for (let i = 0; i < 6; ++i) await grid.press("a");
  const steps = await figure_json(page, "Batch"), at = steps.at(-7).n; // the newest is shown where none is chosen
  const step = page.locator(".batch .chosen [data-field='step.number']");
  const address = (text) => page.waitForFunction((part) => location.hash.includes(part), text);
  await address(`at=${at}`);
  assert.equal(await step.textContent(), String(at));
  // A page that was recorded, one that was not, one that is free.
  const { groups } = await server.json("/api/pages");
  const contents = await Promise.all([...groups[0].pages].map((_, i) => server.json(`/api/pages?group=0&page=${i}`)));
  const known = contents.find((c) => c.tokens?.length > 0), hidden = contents.find((c) => c.hidden && c.state === "cached");
  if (!known) return void t.diagnostic("this server does not tell the tokens of a page");
  const map = page.getByRole("slider", { name: "Page", exact: true });
  const choose = (n) => page.evaluate((to) => (location.hash = `${location.hash.replace(/[?&]page=[^&]*/, "")}&page=0:${to}`), n);
  await choose(hidden.page);
  await page.getByText("None has.").waitFor();
  await choose(known.page);
  const chips = page.locator(".pages .about .token");
  await chips.first().waitFor();
  assert.equal((await chips.allTextContents()).join("").replaceAll("·", " "), known.texts.join("").replaceAll("\n", "⏎"));
  await map.focus();
  await map.press("ArrowRight");
  await address(`page=0%3A${known.page + 1}`);
  await map.press("ArrowLeft");
  await address(`page=0%3A${known.page}`);
  await address(`at=${at}`);
  assert.equal(await page.evaluate(() => history.length), length + 2, "only the two of the address itself");
  await page.reload();
  await chips.first().waitFor();
  await page.locator(`.batch .chosen [data-field='step.number']`).getByText(String(at), { exact: true }).waitFor();
  const [told] = (await server.json(`/api/steps?from=${at}&limit=1`)).steps;
  assert.equal(await page.locator(".batch .company a").count(), told.entries.length);
  assert.equal(query().page, `0:${known.page}`);
  await map.focus();
  await map.press("Escape");
  await chips.first().waitFor({ state: "detached" });
  await close(page);
});

served("paused, the address is that of the moment", async (server, t) => {
  if (!(await streams(server, t))) return;
  const page = await open(server, { path: "/#/engine", height: 2400 });
  await page.getByText("Now, as it happens.").waitFor();
  await server.json("/v1/completions", { prompt: "Once", n: 2, max_tokens: 60, ignore_eos: true });
  await page.getByText("No sequence runs.").waitFor();
  await page.getByRole("slider", { name: "Time", exact: true }).fill("500");
  await page.getByText("Paused:").waitFor();
  await page.waitForFunction(() => /seq=\d+/.test(location.hash));
  await page.waitForTimeout(800 * slow);
  const seq = Number(page.url().match(/seq=(\d+)/)[1]);
  assert.equal(Number(await page.locator(".engine").getAttribute("data-seq")), seq);
  const running = await figure_json(page, "Running");
  await page.getByRole("button", { name: "Go on" }).click();
  await page.waitForFunction(() => !location.hash.includes("seq="));
  await at_moment(page, seq);
  assert.deepEqual(await figure_json(page, "Running"), running);
  await close(page);
});
