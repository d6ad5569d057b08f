// Pages of the KV cache: four choices of one prompt share its full pages and copy the one they write to; every
// cell of the map has the colour of its page; block tables are the API's.
import assert from "node:assert/strict";
import { at_moment, close, figure_json, open, streams, themes, with_server } from "./browser.mjs";

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
    assert.equal(await map.getAttribute("aria-valuetext"), `page ${shared}, used, 4 holders`);

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
