// The Journey: every chapter by keyboard alone, every "Do" ends in a figure with data or a sentence why not, figures
// have their source, sums are the API's.
import assert from "node:assert/strict";
import { close, figure_json, open, slow, with_server, without_chip } from "./browser.mjs";

const served = with_server("--sequences", "8", "--kv-tokens", "16384");
const pageless = with_server("--sequences", "8", "--record", "none");
const chapters = { 1: 5, 2: 5, 3: 5, 4: 5, 5: 5, 9: 5, 13: 5 };

const at = (page, chapter, beat, label) =>
  page.evaluate(([c, b, l]) => (location.hash = `#/journey/${c}?beat=${b}${l ? `&req=${l}` : ""}`), [chapter, beat, label]);
const label_of = (page) => new URL(page.url().replace("#/", "")).searchParams.get("req");
const beats = (page) => page.getByRole("list", { name: "Beats" }).getByRole("button");
const scene = (page) => page.locator(".scene");

// Digits without a source, and figures without a chip.
async function sources(page, what) {
  const bare = await page.evaluate(() => {
    const out = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node; (node = walker.nextNode());)
      if (/\d/.test(node.data) && !node.parentElement.closest("[data-from], [data-text], dialog, option, script, style, noscript"))
        out.push(node.data.trim());
    return out;
  });
  assert.deepEqual(bare, [], what);
  assert.deepEqual(await without_chip(page), [], what);
}
// Something to look at: a figure that says a number, or a sentence why there is none.
async function shows(page, what) {
  await page.locator(".scene [role=figure] .num, .scene .empty, .words [role=alert]").first().waitFor({ timeout: 60000 * slow });
  assert.equal((await scene(page).innerText()).trim() === "", false, what);
}
// Presses the beat's button with Enter, if it has one, and waits until it is through.
async function press(page) {
  await page.locator(".words .says").waitFor();
  await page.getByText("live", { exact: true }).waitFor();
  const button = page.locator("button.do");
  if (!(await button.count())) return false;
  await button.focus();
  await page.keyboard.press("Enter");
  await page.locator("button.do:not(:disabled)").waitFor({ timeout: 120000 * slow });
  return true;
}
async function prompt_by_keyboard(page) {
  await page.locator(".words .says").waitFor();
  const field = page.getByLabel("Prompt", { exact: true });
  if (!(await field.count())) return;
  await page.locator("form button.primary:not(:disabled)").waitFor();
  await field.focus();
  await page.keyboard.press("Enter");
  await page.getByRole("figure").first().waitFor();
}
// Three digits that matter, as the page writes them.
const significant = (n) => n.toFixed(n >= 99.95 ? 0 : n >= 9.995 ? 1 : n >= 0.0995 ? 2 : 3);
const exact = (text) => Number(text.replaceAll(",", ""));

for (const [chapter, count] of Object.entries(chapters))
  served(`chapter ${chapter} by keyboard, and all that it offers to do`, async (server) => {
    const page = await open(server, { path: `/#/journey/${chapter}` });
    await page.getByText("live", { exact: true }).waitFor();
    // Empty, it says what to do.
    await shows(page, "empty");
    await sources(page, "empty");
    await prompt_by_keyboard(page);
    const all = await beats(page).count();
    assert.ok(all >= 2 && all <= count);
    for (let beat = 1; beat <= all; ++beat) {
      await beats(page).nth(beat - 1).and(page.locator("[aria-current=step]")).waitFor();
      await shows(page, `beat ${beat}`);
      await press(page);
      await shows(page, `beat ${beat}, done`);
      // A server without the endpoint: the chapter says so, and the browser logs it.
      if (await page.getByText("cannot send company").count()) page.problems = page.problems.filter((p) => !/404/.test(p));
      await sources(page, `beat ${beat}`);
      // Every figure has a table or is one, and `t` shows it.
      for (const figure of await scene(page).getByRole("figure").all()) {
        const table = figure.getByRole("button", { name: "Table", exact: true });
        if (!(await table.count())) {
          assert.ok(await figure.locator("table, ul, dl, p").count(), "a table");
          continue;
        }
        await table.focus();
        await page.keyboard.press("t");
        await figure.locator("table").first().waitFor();
        await sources(page, `beat ${beat}, as tables`);
        await page.keyboard.press("t");
      }
      await page.evaluate(() => document.activeElement?.blur());
      await page.keyboard.press("]");
    }
    await page.keyboard.press("[");
    await beats(page).nth(all - 2).and(page.locator("[aria-current=step]")).waitFor();
    await close(page);
  });

served("without a request each chapter that needs one offers to send it", async (server) => {
  for (const chapter of [1, 3, 4, 5, 9, 13]) {
    const page = await open(server, { path: `/#/journey/${chapter}` });
    await page.getByRole("button", { name: "Send", exact: true }).waitFor();
    await close(page);
  }
});

served("1: the way by the browser's clock, and two lives laid over each other", async (server, t) => {
  const page = await open(server, { path: "/#/journey/1?beat=2" });
  await press(page);
  const wire = await figure_json(page, "The way there and back");
  assert.equal(wire.label, label_of(page));
  const entry = await page.evaluate(() => performance.getEntriesByType("resource").filter((e) => e.name.includes("/v1/")).at(-1).toJSON());
  assert.equal(wire.wait, entry.responseStart - entry.requestStart);
  assert.equal(wire.answer, entry.responseEnd - entry.responseStart);
  const [alone] = await server.ended_of(wire.label);
  if (alone.stamps) {
    assert.equal(wire.server, (alone.stamps.first_write - alone.stamps.received) / 1e6);
    assert.ok(wire.network >= 0 && wire.network <= wire.wait);
  }
  await page.evaluate(() => document.activeElement?.blur());
  await page.keyboard.press("]");
  await page.getByText("The second life is missing").waitFor();
  await press(page);
  if (await page.getByText("cannot send company").count()) return void (await page.context().close(), t.skip("the server has no company"));
  const two = await figure_json(page, "Two lives");
  assert.deepEqual(two.map((l) => l.label), [wire.label, label_of(page)]);
  for (const life of two) {
    const parts = Object.values(life.parts).reduce((sum, ms) => sum + ms, 0);
    assert.ok(Math.abs(parts - life.total) < 1e-6, `${parts} of ${life.total}`);
    const [{ life: told }] = await server.ended_of(life.label);
    if (told) assert.ok(Math.abs(told.reduce((sum, [, , ns]) => sum + ns, 0) / 1e6 - life.total) < 1e-6);
  }
  const [, crowd] = two, [account] = await server.ended_of(crowd.label);
  assert.ok(account.batch_max > 1, "it shared its steps");
  // In words, too.
  for (const sentence of account.why ?? []) await page.getByText(sentence, { exact: true }).first().waitFor();
  await server.expect_idle(60000);
  await close(page);
});

served("4: slab and ticks are its steps, and the sum is its total", async (server) => {
  const page = await open(server, { path: "/#/journey/4?beat=3" });
  const slider = page.getByLabel(/^Length of the prompt/);
  await prompt_by_keyboard(page);
  await slider.focus();
  await page.keyboard.press("Home");
  await press(page);
  await page.getByText("One prompt so far.").waitFor();
  await page.keyboard.press("Tab");
  await slider.focus();
  await page.keyboard.press("End");
  await press(page);
  const runs = await figure_json(page, "Prompts of several lengths");
  const { limits } = await server.json("/api/info");
  assert.deepEqual(runs.map((r) => r.prompt), [32, limits.context - 32]);
  const label = label_of(page), [account] = await server.ended_of(label);
  assert.equal(runs[1].label, label);
  assert.equal(runs[1].first, account.ttft_ms);
  const { phases } = await figure_json(page, "Slab and ticks");
  assert.equal(phases.prefill.rows, account.prompt_tokens - account.cached_tokens);
  assert.equal(phases.decode.rows, account.completion_tokens - 1);
  assert.equal(phases.prefill.steps + phases.decode.steps, account.steps);
  await page.keyboard.press("Tab");
  await page.evaluate(() => document.activeElement?.blur());
  await page.keyboard.press("]");
  const sum = await figure_json(page, "The sum of two numbers");
  assert.equal(sum.total, account.total_ms);
  assert.equal(sum.first + sum.per * (account.completion_tokens - 1), sum.sum);
  const figure = page.getByRole("figure", { name: "The sum of two numbers" });
  await figure.getByRole("button", { name: "Table" }).click();
  assert.equal(await figure.locator("tbody tr").count(), 7);
  await page.evaluate(() => document.activeElement?.blur());
  await page.keyboard.press("]");
  const rows = await figure_json(page, "Arithmetic for each byte");
  assert.ok(rows[0].intensity > 10 * rows[1].intensity, "a long slab computes much more for each byte");
  // By keyboard along the steps.
  const steps = page.getByRole("slider", { name: "Step of the request" });
  await steps.focus();
  await page.keyboard.press("End");
  assert.match(await steps.getAttribute("aria-valuetext"), /^decode, 1 rows/);
  await close(page);
});

served("5: pages fill, the same prompt is found, and the calculator's line is the allocated bytes", async (server) => {
  const page = await open(server, { path: "/#/journey/5" });
  await press(page);
  await page.getByRole("figure", { name: "Its pages" }).waitFor();
  const label = label_of(page);
  // It is held back: the answer grows while one watches, and the numbers of its pages are the API's.
  await page.waitForFunction(() => Number(document.querySelector("[role=figure] .says")?.innerText.match(/(\d+) of the answer/)?.[1] ?? 0) >= 2);
  const told = await figure_json(page, "Its pages");
  const { tables } = await server.json("/api/pages");
  if (tables.length) assert.deepEqual(told.pages, tables[0].pages.slice(0, told.pages.length));
  assert.equal(told.cached, 0);
  assert.ok(told.computed > told.prompt);
  await page.keyboard.press("Tab");
  const hall = page.getByRole("slider", { name: "Page of the sequence" });
  await hall.focus();
  await page.keyboard.press("Home");
  assert.match(await hall.getAttribute("aria-valuetext"), /^page 0, (\d+) of \1 positions filled/);
  await page.evaluate(() => document.activeElement?.blur());
  await page.keyboard.press("]");
  await press(page);
  await page.waitForFunction((old) => !location.hash.includes(old), label);
  await page.getByText(/are kept|were kept/).waitFor();
  const again = await figure_json(page, "Its pages");
  assert.equal(again.prompt, told.prompt);
  assert.ok(again.cached >= again.prompt - 2 * again.page_size, `${again.cached} of ${again.prompt} found`);

  await page.evaluate(() => document.activeElement?.blur());
  await page.keyboard.press("]");
  const { memory, model } = await server.json("/api/info");
  const mine = await figure_json(page, "Size of a KV cache");
  assert.equal(mine.loaded.allocated, memory.kv_bytes);
  assert.equal(mine.loaded.bytes, memory.kv_bytes);
  assert.equal(mine.token_bytes, memory.kv_bytes_per_token);
  assert.equal(mine.shape.kvHeads, model.kv_heads);
  const figure = page.getByRole("figure", { name: "Size of a KV cache" });
  assert.equal(exact(await figure.locator(".loaded .sum").innerText()), memory.kv_bytes);
  assert.equal(exact(await figure.locator("[data-field='kv.allocated']").innerText()), memory.kv_bytes);
  await figure.getByText("bytes allocated: the same").waitFor();
  // The shapes of explanations: half a MiB a token, 2 GiB; then 10.7 GB, and 1.34 with shared heads.
  await press(page);
  assert.equal((await figure_json(page, "Size of a KV cache")).token_bytes, 512 * 1024);
  await page.evaluate(() => document.activeElement?.blur());
  await page.keyboard.press("]");
  for (const gb of ["10.7", "1.34"]) {
    await press(page);
    await figure.locator(".says").getByText(gb).waitFor();
  }
  // By hand.
  await figure.getByRole("spinbutton", { name: "Layers" }).fill("3");
  await figure.getByRole("spinbutton", { name: "Layers" }).blur();
  await figure.getByLabel("Number type").selectOption("f32");
  const own = await figure_json(page, "Size of a KV cache");
  assert.equal(own.token_bytes, 2 * 3 * 8 * 128 * 4);
  await figure.getByRole("spinbutton", { name: "Layers" }).fill("-3");
  await figure.getByRole("spinbutton", { name: "Layers" }).blur();
  assert.equal((await figure_json(page, "Size of a KV cache")).shape.layers, 3);
  // As many as fit, from the plan.
  await page.evaluate(() => document.activeElement?.blur());
  await page.keyboard.press("]");
  const { rows } = await figure_json(page, "How many sequences fit");
  const [group] = memory.groups;
  assert.equal(rows.at(-1).fits, Math.floor(group.pages / group.pages_per_sequence));
  await close(page);
});

served("9: full pages are held four times, the begun one is copied three times", async (server) => {
  const page = await open(server, { path: "/#/journey/9?beat=2" });
  await press(page);
  const figure = page.getByRole("figure", { name: "Block tables of its choices" });
  await figure.getByText("took a copy and the last holder kept it").waitFor();
  // They wait, so what the page shows is what the server has.
  let told, tables;
  for (;;) {
    told = await figure_json(page, "Block tables of its choices");
    ({ tables } = await server.json("/api/pages"));
    if (tables.length === 4 && JSON.stringify(told.tables.map((t) => t.pages)) === JSON.stringify(told.tables.map((t) => tables.find((s) => s.id === t.id)?.pages))) break;
  }
  const whole = Math.floor(told.prompt / told.page_size);
  assert.ok(told.prompt % told.page_size !== 0 && whole >= 2);
  for (let i = 0; i < whole; ++i) assert.equal(new Set(tables.map((t) => t.pages[i])).size, 1, `page ${i}`);
  assert.equal(new Set(tables.map((t) => t.pages[whole])).size, 4);
  await page.waitForFunction(() => document.querySelector("[data-field='page.copied']")?.innerText.startsWith("3"));
  // A page that is chosen: its holders, its tokens, its place in each table. By keyboard.
  const first = figure.getByRole("button", { name: `Page ${tables[0].pages[0]}, place 0 of choice 0, 4 holders` });
  await first.focus();
  await page.keyboard.press("Enter");
  assert.match(await figure.locator(".about").innerText(), new RegExp(`^Page ${tables[0].pages[0]} of the pool has ${told.page_size}`));
  assert.equal((await figure.locator(".about").innerText()).match(/place 0 of choice/g).length, 4);
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowRight");
  assert.match(await page.evaluate(() => document.activeElement.getAttribute("aria-label")), /place 1 of choice 1/);
  // Slabs against pages, on the live lengths.
  await page.evaluate(() => document.activeElement?.blur());
  await page.keyboard.press("]");
  await page.keyboard.press("]");
  const { limits, options } = await server.json("/api/info");
  const room = await figure_json(page, "Slabs against pages");
  assert.equal(room.slabs, 4 * limits.context);
  assert.equal(room.pages, new Set(tables.flatMap((t) => t.pages)).size);
  assert.equal(room.taken, room.pages * options.page_size);
  const { pools: [pool] } = await server.json("/api/snapshot");
  assert.ok(Math.abs(1 - room.held / room.taken - pool.waste) < 1e-9, `waste ${1 - room.held / room.taken}, the pool's ${pool.waste}`);
  // They are let go and end.
  await page.evaluate(() => document.activeElement?.blur());
  assert.equal(await page.locator("button.do").innerText(), "Let them go on to their end");
  await press(page);
  await server.expect_idle(60000);
  await close(page);
});

served("9: a reader who leaves takes the held request along", async (server) => {
  const page = await open(server, { path: "/#/journey/9" });
  await press(page);
  await page.getByRole("figure", { name: "Block tables of its choices" }).waitFor();
  assert.equal((await server.json("/api/snapshot")).running.length, 4);
  await page.evaluate(() => (location.hash = "#/journey"));
  await server.expect_idle(20000);
  await close(page);
});

served("13: parts by kind are the account, and prices are tokens by price", async (server) => {
  const page = await open(server, { path: "/#/journey/13" });
  await press(page);
  const label = label_of(page), [account] = await server.ended_of(label);
  assert.ok(account.cached_tokens > 0, "the second one found the first one's pages");
  await page.getByText("took no pass at all").waitFor();
  await page.waitForFunction(() => document.querySelectorAll(".scene .thick").length === 4);
  const { tokens, works } = await figure_json(page, "Work by kind");
  assert.deepEqual(tokens, { input: account.prompt_tokens - account.cached_tokens, cached: account.cached_tokens, output: account.completion_tokens });
  const total = (name) => works.of.input[name] + works.of.output[name] + works.of.wasted[name];
  for (const [part, field] of [["flops", "flops"], ["weights", "weight_bytes"], ["kvRead", "kv_read_bytes"], ["kvWrite", "kv_write_bytes"]])
    assert.ok(Math.abs(total(part) - account[field]) <= 1e-7 * account[field], `${part}: ${total(part)} of ${account[field]}`);
  // Time too: the steps' shares are the account's, to the nanosecond, and looking up what was cached is no step's.
  const { input_ns, cached_ns, output_ns, wasted_ns } = account.shares;
  assert.equal(total("ns"), input_ns + output_ns + wasted_ns);
  assert.equal(works.of.output.ns, output_ns);
  assert.ok(cached_ns > 0);
  const by_kind = page.getByRole("figure", { name: "Work by kind" });
  await by_kind.getByRole("button", { name: "Table" }).click();
  const cached_cells = await by_kind.getByRole("row", { name: /^cached/ }).locator("td .num").evaluateAll((list) => list.map((cell) => [cell.dataset.field, cell.innerText.replaceAll("\u00a0", " ")]));
  assert.deepEqual(cached_cells[1], ["share.cached", cached_ns < 999_500 ? `${significant(cached_ns / 1e3)} µs` : `${significant(cached_ns / 1e6)} ms`]);

  await page.evaluate(() => document.activeElement?.blur());
  await page.keyboard.press("]");
  await page.keyboard.press("]");
  const money = page.getByRole("figure", { name: "Money" });
  for (const [name, value] of [["The machine, an hour", "3.6"], ["A million input", "2"], ["A million cached", "0.5"], ["A million output", "8"]])
    await money.getByLabel(name).fill(value);
  const told = await figure_json(page, "Money");
  const near = (a, b) => assert.ok(Math.abs(a - b) <= 1e-9 * Math.abs(b), `${a} of ${b}`);
  near(told.bill.input, (told.requests * tokens.input * 2) / 1e6);
  near(told.bill.cached, (told.requests * tokens.cached * 0.5) / 1e6);
  near(told.bill.output, (told.requests * tokens.output * 8) / 1e6);
  near(told.bill.sum, told.bill.input + told.bill.cached + told.bill.output);
  near(told.cost.cached, (told.requests * cached_ns) / 1e12);
  near(told.sum, (told.requests * (input_ns + cached_ns + output_ns + wasted_ns)) / 1e12);
  await page.evaluate(() => document.activeElement?.blur());
  await page.keyboard.press("]");
  await page.keyboard.press("]");
  await page.getByText("together are its account, in every measure").waitFor();
  const sums = page.getByRole("figure", { name: "It adds up" }).locator("tbody tr th");
  assert.deepEqual((await sums.allInnerTexts()).map((text) => text.split(/\s*\n\s*/)),
    ["time, divided", "arithmetic", "weights read", "keys and values read", "keys and values written"].map((name) => [name, "agrees"]));
  await close(page);
});

pageless("where nothing is recorded, what needs it goes by at its own speed or says why not", async (server) => {
  const page = await open(server, { path: "/#/journey/5" });
  await press(page);
  await page.getByRole("figure", { name: "Its pages" }).waitFor();
  await page.getByText("were kept").waitFor();
  await at(page, 9, 1);
  await press(page);
  await page.getByRole("figure", { name: "Slabs against pages" }).waitFor();
  await shows(page, "9");
  await close(page);
});
