// Request, Engine and Model: figures are the API's.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { ask, close, figure_json, open, tokens, visit, with_server, without_chip } from "./browser.mjs";

const served = with_server();
const crowded = with_server("--sequences", "4");
const number = (text) => Number(text.replaceAll(",", "").replace("−", "-").match(/-?[\d.]+/)?.[0]);
const to_ms = { "µs": 1e-3, ms: 1, s: 1000, min: 60000 };
const in_ms = (text) => number(text) * to_ms[text.trim().match(/[^\d.,\s]+$/)[0]];
const in_bytes = (text) => number(text) * 1024 ** ["B", "KiB", "MiB", "GiB"].indexOf(text.match(/\S*B$/)[0]);
const near = (a, b, what) => assert.ok(Math.abs(a - b) <= 0.006 * Math.abs(b) + 1e-9, `${what}: ${a} against ${b}`);

// A figure's tables: the cells of each row.
async function tables(figure) {
  await figure.getByRole("button", { name: "Table" }).click();
  return figure.locator("table").evaluateAll((list) =>
    list.map((one) => [...one.tBodies[0].rows].map((row) => [...row.children].map((cell) => cell.textContent))));
}
// The first of them: by the first cell of each row, the others' text.
const table = async (figure) => Object.fromEntries((await tables(figure))[0].map(([name, ...cells]) => [name, cells]));
const query = (page) => new URL(page.url().replace("#/", "")).searchParams;
const selected = (page, name, value) => page.waitForFunction(([n, v]) => new URL(location.href.replace("#/", "")).searchParams.get(n) === v, [name, value]);
// How the page says a part of a life's reason.
const reason = ([kind, , , about]) => {
  const who = (id) => (id === null ? "another key’s request" : `request ${id}`);
  if (about?.behind) return `behind ${who(about.behind[0])}`;
  if (about?.by !== undefined) return `by ${who(about.by)}`;
  return { step: "until the step at work had ended", seats: "for a seat", pages: kind === "queue" ? "for pages" : "there was no page for its rows", policy: "for its batch: the policy is static", prompt: "while its first choice computed the prompt", budget: "the step had no room for its rows", host: "the host drew its token", worker: "it waited for a worker", engine: "from the worker to the queue" }[about?.reason] ?? "";
};
// "To its first token 61.8 ms = queue 4.1 + prefill 57.7": what is shown sums, digit by digit, and is the API's.
function check_way(text, { life, stamps }) {
  const [, whole, unit, rest] = text.replaceAll("\u00a0", " ").match(/^To its first token ([\d.,]+) (ms) = (.+)$/);
  assert.equal(unit, "ms");
  const places = whole.split(".")[1]?.length ?? 0, units = (number) => Math.round(Number(number.replaceAll(",", "")) * 10 ** places);
  const parts = rest.split(" + ").map((part) => part.match(/^(.+) ([\d.,]+)$/).slice(1));
  for (const [, number] of parts) assert.equal(number.split(".")[1]?.length ?? 0, places, text);
  assert.equal(parts.reduce((sum, [, number]) => sum + units(number), 0), units(whole), text);
  assert.ok(Math.abs(units(whole) / 10 ** places - (stamps.first_token - stamps.received) / 1e6) <= 0.5001 / 10 ** places, text);
  for (const [kind, number] of parts) {
    const ns = life.filter(([k, start]) => k.replace("_", " ") === kind && start < stamps.first_token).reduce((sum, [, start, n]) => sum + Math.min(n, stamps.first_token - start), 0);
    assert.ok(Math.abs(units(number) / 10 ** places - ns / 1e6) < 1.001 / 10 ** places, `${kind}: ${number} of ${ns}`);
  }
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
  check_way(await figure.locator(".way").innerText(), account);
  const [{ to_first_token: way }] = await figure_json(page, "Life");
  assert.equal(way.ns, stamps.first_token - stamps.received);
  assert.equal(way.kinds.reduce((sum, [, ns]) => sum + ns, 0), way.ns);
  const [sums, parts] = await tables(figure);
  const { total, ...kinds } = Object.fromEntries(sums.map(([name, ...cells]) => [name, cells]));
  // One after the other, with the reason of each.
  assert.deepEqual(parts.map(([kind, begins, ns, why]) => [kind, number(begins), number(ns), why.split(/;? ?meanwhile/)[0]]),
    life.map((part) => [part[0].replace("_", " "), part[1] - stamps.received, part[2], reason(part)]));
  assert.deepEqual(Object.fromEntries(Object.entries(kinds).map(([kind, [ns]]) => [kind, number(ns)])), by_kind(life));
  assert.equal(number(total[0]), Object.values(kinds).reduce((sum, [ns]) => sum + number(ns), 0));
  assert.equal(number(total[0]), stamps.last_write - stamps.received);
  // What it cost is its parts of the steps.
  const cost = await table(page.getByRole("figure", { name: "Cost" }));
  const { input_ns, cached_ns, output_ns, wasted_ns } = account.shares;
  near(in_ms(cost.sum[0]), (input_ns + cached_ns + output_ns + wasted_ns) / 1e6, "cost");
  near(in_ms(cost.output[0]), output_ns / 1e6, "output");
  near(in_ms(cost.cached[0]), cached_ns / 1e6, "cached");
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
  await figure.getByRole("button", { name: "Picture" }).click();
  // The reason stands at the part: for who points, and for who goes there by keyboard. What is chosen is in the address.
  const at = account.life.findIndex((part) => part[0] === "queue" && part[3].reason !== "step" && part[3].ran), waited = account.life[at];
  assert.ok(at >= 0, "it waited for somebody");
  const life = page.getByRole("figure", { name: "Life" }), says = new RegExp(`^queue .*, ${reason(waited)}, from `);
  assert.match(await life.locator(".track span").nth(at).getAttribute("title"), says);
  const cursor = life.getByRole("slider", { name: "Part of the life" });
  await cursor.focus();
  for (let i = 0; i <= at; ++i) await page.keyboard.press("ArrowRight");
  assert.match(await cursor.getAttribute("aria-valuetext"), says);
  await selected(page, "part", String(at));
  const about = life.locator(".about");
  assert.equal(await about.getByRole("link").first().getAttribute("href"), `#/request/${waited[3].behind?.[0] ?? waited[3].ran[0][0]}`);
  near(in_ms(await about.locator("[data-field='life.part']").innerText()), waited[2] / 1e6, "the part");
  const [[who, ns]] = waited[3].ran;
  near(in_ms(await about.locator("[data-field='life.ran']").first().innerText()), ns / 1e6, `request ${who} meanwhile`);
  // Closer, about what is chosen; later; the same again by the address alone.
  const whole = account.life.reduce((sum, [, , n]) => sum + n, 0) / 1e6, middle = (waited[1] - account.stamps.received + waited[2] / 2) / 1e6;
  await page.keyboard.press("w");
  await page.keyboard.press("w");
  await page.waitForFunction(() => location.hash.includes("range="));
  const range = () => query(page).get("range").split("-").map(Number);
  let [from, to] = range();
  assert.ok(Math.abs(to - from - whole / 4) < 0.001, `${from} to ${to} of ${whole}`);
  assert.ok(from <= middle && middle <= to, `${middle} in ${from} to ${to}`);
  const ends = async () => (await page.locator(".axis [data-field='life.at']").allInnerTexts()).map(in_ms);
  assert.equal((await ends()).length, 4, "both ends, in Life and in Steps");
  await life.getByRole("button", { name: "Earlier" }).click();
  await page.waitForFunction((old) => !location.hash.includes(`range=${old}-`), from);
  const [left, right] = range();
  assert.ok(left < from && Math.abs(right - left - (to - from)) < 0.001);
  const again = await open(server, { path: `/${new URL(page.url()).hash}` });
  await again.getByRole("slider", { name: "Part of the life" }).waitFor();
  assert.match(await again.getByRole("slider", { name: "Part of the life" }).getAttribute("aria-valuetext"), says);
  (await again.locator(".axis [data-field='life.at']").allInnerTexts()).map(in_ms).forEach((ms, i) => near(ms, [left, right][i % 2], "an end of the axis"));
  await close(again);
  await cursor.focus();
  for (let i = 0; i < 3; ++i) await page.keyboard.press("s");
  await page.waitForFunction(() => !location.hash.includes("range="));
  await life.getByRole("button", { name: "To the first token" }).click();
  await page.waitForFunction(() => location.hash.includes("range="));
  near(range()[1], (account.stamps.first_token - account.stamps.received) / 1e6, "the first token");
  assert.equal(range()[0], 0);
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
  await selected(page, "at", String(records[1].step));
  const again = await open(server, { path: `/${new URL(page.url()).hash}` });
  await again.getByRole("slider", { name: "Step" }).waitFor();
  assert.equal(await again.getByRole("slider", { name: "Step" }).getAttribute("aria-valuenow"), "1");
  assert.equal(number(await again.getByRole("figure", { name: "Steps" }).locator(".chosen [data-field='step.number']").innerText()), records[1].step);
  await close(again);
  await close(page);
});

served("two requests side by side, and an unknown one is explained", async (server) => {
  const page = await open(server);
  const one = await ask(page, "Say something.");
  const two = await ask(page, "Again.");
  await page.goto(`${server.url}/#/request/${two}?vs=${one}`);
  const life = page.getByRole("figure", { name: "Life" });
  await life.getByRole("button", { name: "Table" }).click();
  assert.deepEqual((await life.locator("table").first().locator("thead th").allTextContents()).slice(1), [two, one]);
  const totals = await life.getByRole("row", { name: /^total/ }).locator("td").allTextContents();
  const steps = await tables(page.getByRole("figure", { name: "Steps" })), figures = {};
  for (const name of ["Cost", "Prefix cache", "Work"]) figures[name] = await table(page.getByRole("figure", { name, exact: true }));
  for (const [i, label] of [two, one].entries()) {
    const account = await written(server, label), { stamps, records, shares } = account;
    assert.equal(number(totals[i]), stamps.last_write - stamps.received, label);
    // Every step of both, from the first byte of each on.
    const shown = records.slice(0, 25);
    assert.deepEqual(steps[i].map((row) => number(row[0])), shown.map((record) => record.step));
    steps[i].forEach((row, k) => near(in_ms(row[4]), (shown[k].end_ns - shown[k].wall_ns - stamps.received) / 1e6, "start"));
    for (const name of ["input", "cached", "output"]) near(in_ms(figures.Cost[name][i]), shares[`${name}_ns`] / 1e6, name);
    assert.equal(number(figures["Prefix cache"].cached[i]), account.cached_tokens);
    assert.equal(number(figures.Work["pages held at most"][i]), account.pages);
    near(in_bytes(figures.Work["keys and values written"][i]), account.kv_write_bytes, "written");
  }
  // A step of each is chosen, and both tracks end at the same time.
  await page.getByRole("figure", { name: "Steps" }).getByRole("button", { name: "Picture" }).click();
  for (const [label, name] of [[two, "at"], [one, "vsat"]]) {
    await page.getByRole("slider", { name: `Step of ${label}` }).focus();
    await page.keyboard.press("End");
    await selected(page, name, String((await written(server, label)).records.at(-1).step));
  }
  const ends = await page.getByRole("figure", { name: "Steps" }).locator(".axis").allInnerTexts();
  assert.equal(ends.length, 2);
  assert.equal(ends[0], ends[1]);
  await page.goto(`${server.url}/#/request/${two}?vs=nobody`);
  await page.getByText("found no request").waitFor();
  await life.waitFor();
  assert.equal(await page.getByRole("slider", { name: "Step", exact: true }).count(), 1, "the one that is there is shown");
  await page.goto(`${server.url}/#/request/nobody`);
  await page.getByText("found no request").waitFor();
  page.problems = page.problems.filter((p) => !/404/.test(p)); // the browser logs it
  await close(page);
});

served("a fork is laid beside its parent, a repeat beside what it repeats, a choice is one's own", async (server) => {
  const prompt = "Tell me a story about a bird who could not sing. ".repeat(4), body = { prompt, max_tokens: 12, seed: 5, ignore_eos: true, vitrine: { record: true } };
  const send = async (path, label, more) => {
    const answer = await server.post(path, { ...body, ...more }, { "x-request-id": label });
    assert.equal(answer.status, 200, await answer.text());
  };
  await send("/v1/completions", "first");
  await send("/v1/completions", "second");
  await send("/v1/completions", "other", { prompt: prompt.replace("bird", "wolf") });
  const { prompt_tokens } = await server.json("/api/requests/first/tokens");
  const forked = await server.post("/api/requests/first/fork", { position: prompt_tokens + 3, seed: 9, stream: false }, { "x-request-id": "forked" });
  assert.equal(forked.status, 200, await forked.text());
  const page = await open(server, { path: "/#/request/second" });
  await page.getByRole("link", { name: "Compare with its repeat" }).click();
  await selected(page, "vs", "first");
  await page.getByRole("slider", { name: "Step of first" }).waitFor();
  const cache = await table(page.getByRole("figure", { name: "Prefix cache" }));
  assert.deepEqual(cache.cached.map(number), [(await written(server, "second")).cached_tokens, 0], "cached against fresh");
  await page.goto(`${server.url}/#/request/forked`);
  const link = page.getByRole("link", { name: "Compare with its parent" });
  assert.equal(await link.getAttribute("href"), "#/request/forked?vs=first");
  await page.goto(`${server.url}/#/request/first`);
  assert.equal(await page.getByRole("link", { name: "Compare with a fork of it" }).getAttribute("href"), "#/request/first?vs=forked");
  await page.goto(`${server.url}/#/request/other`);
  await page.getByRole("figure", { name: "Answer" }).waitFor();
  await page.waitForTimeout(500);
  assert.equal(await page.getByRole("link", { name: /^Compare with/ }).count(), 0, "another prompt of the same length is no repeat");

  await send("/v1/completions", "several", { n: 3, max_tokens: 8 });
  const { requests } = await server.json("/api/requests/several");
  await page.goto(`${server.url}/#/request`);
  await page.getByRole("link", { name: "several / 2" }).click();
  await selected(page, "choice", "2");
  const mine = requests.find((r) => r.choice === 2), life = page.getByRole("figure", { name: "Life" });
  const [sums] = await tables(life), { total } = Object.fromEntries(sums.map(([name, ...cells]) => [name, cells]));
  assert.equal(number(total[0]), mine.life.reduce((sum, [, , ns]) => sum + ns, 0));
  await page.getByRole("figure", { name: "Steps" }).getByRole("button", { name: "JSON of Steps" }).waitFor();
  assert.deepEqual((await figure_json(page, "Steps")).map((step) => step.share_ns), mine.records.map((step) => step.share_ns));
  const { tokens: kept } = await server.json("/api/requests/several/tokens?choice=2");
  assert.deepEqual((await figure_json(page, "Answer")).map((token) => token.id), kept.slice(prompt_tokens).map((token) => token.id));
  await page.getByRole("navigation", { name: "Its choices" }).getByRole("link", { name: "1" }).click();
  await selected(page, "choice", "1");
  // Two choices of one request, side by side.
  await page.goto(`${server.url}/#/request/several?choice=1&vs=several&vschoice=2`);
  await page.waitForFunction(() => document.querySelectorAll("[role=slider][aria-label^='Part of the life']").length === 2);
  assert.deepEqual((await figure_json(page, "Cost")).map((c) => c.output_ns), [1, 2].map((n) => requests.find((r) => r.choice === n).shares.output_ns));
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
  for (const view of ["#/ask", "#/request", `#/request/${label}`, `#/request/${label}?vs=${label}&part=3`, "#/engine", "#/lab/tokens", "#/lab/sampling", "#/journey/2", "#/journey/3", "#/model"]) {
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
