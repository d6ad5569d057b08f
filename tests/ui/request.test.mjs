// Request, Engine and Model: figures are the API's.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { ask, close, open, tokens, visit, with_server, without_chip } from "./browser.mjs";

const served = with_server();
const crowded = with_server("--sequences", "4");
const number = (text) => Number(text.replaceAll(",", "").replace("−", "-").match(/-?[\d.]+/)?.[0]);
const to_ms = { "µs": 1e-3, ms: 1, s: 1000, min: 60000 };
const in_ms = (text) => number(text) * to_ms[text.trim().match(/[^\d.,\s]+$/)[0]];
const near = (a, b, what) => assert.ok(Math.abs(a - b) <= 0.006 * Math.abs(b) + 1e-9, `${what}: ${a} against ${b}`);

// A figure's table: by the first cell of each row, the others' text.
async function table(figure) {
  await figure.getByRole("button", { name: "Table" }).click();
  return Object.fromEntries(await figure.locator("tbody tr").evaluateAll((list) =>
    list.map((row) => [row.children[0].textContent, [...row.children].slice(1).map((cell) => cell.textContent)])));
}
// Once its last byte is out.
async function written(server, label) {
  for (let i = 0; i < 100; ++i) {
    const { requests: [one] } = await server.json(`/api/requests/${label}`);
    if (one.written) return one;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  assert.fail(`${label} is not written`);
}
const by_kind = (life) => life.reduce((out, [kind, , ns]) => ({ ...out, [kind.replace("_", " ")]: (out[kind.replace("_", " ")] ?? 0) + ns }), {});

served("a life is the API's, and its parts sum to the total to the nanosecond", async (server) => {
  const page = await open(server);
  const label = await ask(page, "Why is the sky blue?");
  const account = await written(server, label);
  const { life, stamps } = account;
  let at = stamps.received;
  for (const [kind, start, ns] of life) {
    assert.equal(start, at, kind);
    at += ns;
  }
  assert.equal(at, stamps.last_write, "from the first byte to the last");
  for (const kind of ["read", "parse", "template", "tokenize", "handoff", "queue", "prefill", "decode", "write"])
    assert.ok(by_kind(life)[kind] > 0, kind);
  assert.ok(account.bytes_out > account.completion_tokens);
  assert.ok(stamps.first_write > stamps.first_token && stamps.last_write >= stamps.first_write);

  await page.getByText("Follow it step by step").click();
  const figure = page.getByRole("figure", { name: "Life" });
  for (const sentence of account.why) await figure.getByText(sentence, { exact: true }).waitFor();
  const rows = await table(figure);
  const { total, ...kinds } = rows;
  assert.deepEqual(Object.fromEntries(Object.entries(kinds).map(([kind, [ns]]) => [kind, number(ns)])), by_kind(life));
  assert.equal(number(total[0]), Object.values(kinds).reduce((sum, [ns]) => sum + number(ns), 0));
  assert.equal(number(total[0]), stamps.last_write - stamps.received);
  // What it cost is its parts of the steps.
  const cost = await table(page.getByRole("figure", { name: "Cost" }));
  const { input_ns, cached_ns, output_ns, wasted_ns } = account.shares;
  near(in_ms(cost.sum[1]), (input_ns + cached_ns + output_ns + wasted_ns) / 1e6, "cost");
  near(in_ms(cost.output[1]), output_ns / 1e6, "output");
  assert.equal(account.records.reduce((sum, step) => sum + step.share_ns, 0), input_ns + output_ns + wasted_ns);
  // The same by the address alone.
  const again = await open(server, { path: `/#/request/${label}` });
  await again.getByRole("figure", { name: "Life" }).waitFor();
  await close(again);
  await close(page);
});

crowded("a step's company is /api/steps/N, and who waits knows for whom", async (server) => {
  const { requests } = await server.json("/api/lab/company", { n: 6, max_tokens: 128 });
  const mine = await fetch(`${server.url}/v1/completions`, {
    method: "POST", headers: { "x-request-id": "waits" },
    body: JSON.stringify({ prompt: "Once", max_tokens: 4, seed: 1, ignore_eos: true }),
  });
  assert.equal(mine.status, 200);
  await mine.text();
  const account = await written(server, "waits");
  const queue = account.life.filter(([kind]) => kind === "queue");
  assert.ok(queue.some(([, , , about]) => about.reason === "seats" || about.reason === "behind"), JSON.stringify(queue));
  assert.ok(queue.some(([, , , about]) => about.ran?.length > 0));
  assert.match(account.why.join("\n"), /to the first token: queued/);
  await server.expect_idle(60000);
  const numbers = new Set();
  for (const label of requests) {
    const one = await written(server, label);
    numbers.add(one.id);
    assert.equal(one.finish_reason, "length");
  }
  const page = await open(server, { path: "/#/request/waits" });
  const figure = page.getByRole("figure", { name: "Steps" });
  await figure.getByRole("button", { name: "Table" }).click();
  const rows = await figure.locator("tbody tr").evaluateAll((list) => list.map((row) => [...row.children].map((cell) => cell.textContent)));
  let company = 0;
  for (const row of rows) {
    const step = await server.json(`/api/steps/${number(row[0])}`);
    const others = step.entries.filter(([id]) => id !== account.id);
    const told = row.at(-1).split(" · ").filter(Boolean);
    assert.equal(number(row[9]), others.length + 1);
    assert.equal(told.length, Math.min(16, others.length));
    for (const text of told) {
      const [, id, phase] = text.match(/^(\d+) (prefill|decode)/);
      assert.ok(others.some(([other, , other_phase]) => other === Number(id) && other_phase === phase), text);
      assert.ok(numbers.has(Number(id)), "one of the company");
      ++company;
    }
  }
  assert.ok(company > 0, "it was alone: the test shows nothing");
  await close(page);
});

served("the table of steps is the API's", async (server) => {
  const page = await open(server);
  const label = await ask(page, "What is a cat?");
  await page.goto(`${server.url}/#/request/${label}`);
  const figure = page.getByRole("figure", { name: "Steps" });
  await figure.getByRole("button", { name: "Table" }).click();
  const rows = await figure.locator("tbody tr").evaluateAll((list) =>
    list.map((row) => [...row.children].map((cell) => cell.textContent)));
  const [account] = await server.ended_of(label);
  const records = account.records.slice(0, 25);
  assert.equal(rows.length, records.length);
  records.forEach((record, i) => {
    assert.equal(number(rows[i][0]), record.step);
    assert.equal(rows[i][1], record.phase);
    assert.equal(number(rows[i][3]), record.tokens);
    near(in_ms(rows[i][6]), record.forward_ms, "forward");
  });
  // By keyboard: the slider goes to the next step.
  await figure.getByRole("button", { name: "Picture" }).click();
  await figure.getByRole("slider").focus();
  await page.keyboard.press("ArrowRight");
  assert.match(await figure.getByRole("slider").getAttribute("aria-valuetext"), /^decode/);
  await close(page);
});

served("two requests side by side, and an unknown one is explained", async (server) => {
  const page = await open(server);
  const one = await ask(page, "Say something.");
  const two = await ask(page, "Again.");
  await page.goto(`${server.url}/#/request/${two}?vs=${one}`);
  const life = page.getByRole("figure", { name: "Life" });
  await life.getByRole("button", { name: "Table" }).click();
  assert.deepEqual((await life.locator("thead th").allTextContents()).slice(1), [two, one]);
  const totals = await life.getByRole("row", { name: /^total/ }).locator("td").allTextContents();
  for (const [i, label] of [two, one].entries()) {
    const { stamps } = await written(server, label);
    assert.equal(number(totals[i]), stamps.last_write - stamps.received, label);
  }
  await page.goto(`${server.url}/#/request/nobody`);
  await page.getByText("found no request").waitFor();
  page.problems = page.problems.filter((p) => !/404/.test(p)); // the browser logs it
  await close(page);
});

served("Engine shows what runs, Model what the server has", async (server) => {
  const page = await open(server, { path: "/#/engine" });
  await page.getByText("Nobody waits.").waitFor();
  const done = server.json("/v1/completions",
    { prompt: "Once", n: 4, max_tokens: 1500, ignore_eos: true, seed: 1 });
  await page.getByRole("figure", { name: "Running" }).locator("tbody tr").nth(3).waitFor();
  await done;
  // The batch: the steps that the page shows are the API's.
  const batch = page.getByRole("figure", { name: "Batch" });
  await batch.getByRole("button", { name: "Table" }).click();
  const first = await batch.locator("tbody tr").first().evaluate((row) => [...row.children].map((cell) => cell.textContent));
  const step = await server.json(`/api/steps/${number(first[0])}`);
  near(in_ms(first[1]), step.wall_ns / 1e6, "time of the step");
  assert.equal(number(first[3]), step.rows.decode);
  assert.equal(number(first[4]), step.entries.length);
  await batch.getByRole("button", { name: "Picture" }).click();
  const saving = page.waitForEvent("download");
  await batch.getByRole("button", { name: "Save a trace for Perfetto" }).click();
  const trace = JSON.parse(readFileSync(await (await saving).path(), "utf8"));
  assert.ok(trace.traceEvents.some((event) => event.name === `step ${number(first[0])}`));
  await page.getByText("No sequence runs.").waitFor();
  const pages = page.getByRole("figure", { name: "Pages of the KV cache" });
  await pages.getByRole("button", { name: "Table" }).click();
  const { pools: [pool] } = await server.json("/api/snapshot");
  const shown = Object.fromEntries(await pages.locator("tbody tr").evaluateAll((list) =>
    list.map((row) => [row.children[0].textContent, row.children[1].textContent])));
  for (const name of ["used", "cached", "free", "shared", "total"]) assert.equal(number(shown[name]), pool[name], name);

  await visit(page, "#/model");
  const { memory } = await server.json("/api/info");
  const figure = page.getByRole("figure", { name: "Memory" });
  await figure.getByRole("button", { name: "Table" }).click();
  assert.match(await figure.getByRole("row", { name: /^weights/ }).textContent(),
    new RegExp(`${(memory.packed_bytes / 2 ** 20).toFixed(1)}.MiB`));
  await page.getByLabel("Text to split").fill("héllo 🦊 שלום");
  const { pieces } = await server.json("/tokenize", { content: "héllo 🦊 שלום", with_pieces: true, add_special: false });
  await page.waitForFunction((n) => document.querySelectorAll(".pieces .token").length === n, pieces.length);
  await close(page);
});

served("no digit is on the page that is not a figure with its source", async (server) => {
  const page = await open(server);
  const label = await ask(page, "Tell me a story about a fox.");
  await tokens(page).nth(2).click();
  for (const view of ["#/ask", "#/request", `#/request/${label}`, "#/engine", "#/lab/tokens", "#/lab/sampling", "#/journey/2", "#/journey/3", "#/model"]) {
    await visit(page, view, label);
    const bare = await page.evaluate(() => {
      const out = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
      for (let node; (node = walker.nextNode());)
        if (/\d/.test(node.data) && !node.parentElement.closest("[data-from], [data-text], dialog, option, script, style, noscript"))
          out.push(node.data.trim());
      return out;
    });
    assert.deepEqual(bare, [], view);
    // And every figure has its chip.
    assert.deepEqual(await without_chip(page), [], view);
  }
  await close(page);
});
