// Request, Engine and Model: figures are the API's.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { ask, close, open, tokens, visit, with_server, without_chip } from "./browser.mjs";

const served = with_server();
const number = (text) => Number(text.replaceAll(",", "").replace("−", "-").match(/-?[\d.]+/)?.[0]);
const to_ms = { "µs": 1e-3, ms: 1, s: 1000, min: 60000 };
const in_ms = (text) => number(text) * to_ms[text.trim().match(/[^\d.,\s]+$/)[0]];
const near = (a, b, what) => assert.ok(Math.abs(a - b) <= 0.006 * Math.abs(b) + 1e-9, `${what}: ${a} against ${b}`);

served("a life is its account, and its parts sum to the total", async (server) => {
  const page = await open(server);
  const label = await ask(page, "Why is the sky blue?");
  await page.getByText("Follow it step by step").click();
  const life = page.getByRole("figure", { name: "Life" });
  await life.getByRole("button", { name: "Table" }).click();
  const rows = Object.fromEntries(await life.locator("tbody tr").evaluateAll((list) =>
    list.map((row) => [row.children[0].textContent, row.children[1].textContent])));
  const [account] = await server.ended_of(label);
  for (const [name, field] of [["queue", "queue_ms"], ["prefill", "prefill_ms"], ["decode", "decode_ms"], ["total", "total_ms"]])
    near(in_ms(rows[name]), account[field], name);
  const sum = ["queue", "prefill", "decode", "between"].reduce((all, name) => all + in_ms(rows[name]), 0);
  near(sum, account.total_ms, "sum");
  // The same by the address alone.
  const again = await open(server, { path: `/#/request/${label}` });
  await again.getByRole("figure", { name: "Life" }).waitFor();
  await close(again);
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
