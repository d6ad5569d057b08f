// The bench of the draw: what it shows is what the server drew, and what it says would be drawn is drawn.
import assert from "node:assert/strict";
import { ask, close, open, setting, tokens, with_server } from "./browser.mjs";

const served = with_server();
const prompt = "Once upon a time there was a small dog who lived by the sea, and";
const seeded = { seed: 77, temperature: 0.9, top_p: 0.9, max_tokens: 40 };

// A request by the API, recorded, and the bench on one of its tokens.
async function recorded(server, more = {}) {
  const answer = await server.post("/v1/completions", { prompt, ...seeded, ...more, vitrine: { record: true } });
  assert.equal(answer.status, 200, await answer.clone().text());
  const label = answer.headers.get("x-request-id");
  return { label, text: (await answer.json()).choices[0].text, kept: await server.json(`/api/requests/${label}/tokens`) };
}
const bench = (label, place) => `/#/lab/sampling?req=${label}&pos=${place}`;
const stages = (page) => page.getByRole("figure", { name: "Stages" });
const stages_of = (server, label, body) => server.json(`/api/requests/${label}/stages`, body);
const shown = (text) => text.replaceAll(" ", "·").replaceAll("\n", "⏎");
const number = (text) => Number(text.replaceAll(",", "").replace("−", "-").replace(/[^\d.-]/g, ""));

async function set(page, name, value) {
  const field = page.getByLabel(`${name}, number`, { exact: true });
  await field.fill(String(value));
  await field.blur();
}
// The table of the stages, once it says `expected` at some cell.
async function table(page) {
  const button = stages(page).getByRole("button", { name: "Table" });
  if (await button.count()) await button.click();
  return stages(page).locator("tbody tr").evaluateAll((rows) =>
    rows.map((row) => [...row.children].map((cell) => cell.textContent)));
}

// The race: the drawn token has the least time, in the answer and on the page. There is none where one token is left.
function expect_race(told, rows) {
  if (told.stages.at(-1).kept === 1) {
    assert.equal(told.race, undefined);
    return 0;
  }
  assert.equal(told.race[0].id, told.drawn.id);
  for (const run of told.race) assert.ok(Math.abs(run.noise / run.p / run.time - 1) < 1e-9 && run.time >= told.race[0].time);
  const runs = new Map(told.race.map((run) => [shown(run.text), run]));
  const columns = told.stages.length + 1;
  let ran = 0;
  for (const row of rows.filter(([name]) => runs.has(name) && row_of(rows, name) === 1)) {
    if (!row[columns + 1]) continue;
    const { noise, time } = runs.get(row[0]);
    for (const [cell, value] of [[row[columns], noise], [row[columns + 1], time]])
      assert.ok(Math.abs(number(cell) - value) <= 0.02 * value + 0.01, `${row[0]}: ${cell}, not ${value}`);
    ++ran;
  }
  assert.ok(ran > 0, "no row has its race");
  return 1;
}
const row_of = (rows, name) => rows.filter((row) => row[0] === name).length;

served("own parameters end in the own token, stage by stage", async (server) => {
  const { label, kept } = await recorded(server);
  const page = await open(server, { path: bench(label, 1) });
  const output = kept.tokens.slice(kept.prompt_tokens);
  let races = 0;
  for (const at of [0, 7, output.length - 1]) {
    if (at > 0) await tokens(page).nth(at).click();
    const told = await stages_of(server, label, { position: kept.prompt_tokens + at });
    assert.equal(told.same_token, true);
    assert.equal(told.drawn.id, output[at].id);
    for (const stage of told.stages) {
      const sum = stage.top.reduce((all, [, , , p]) => all + p, stage.rest.p);
      assert.ok(Math.abs(sum - 1) < 1e-12, `${stage.name} sums to ${sum}`);
      assert.equal(stage.top.length + stage.rest.n, stage.kept);
    }
    await page.getByText(`Token ${at + 1} of`).waitFor();
    await stages(page).getByText("is drawn, as it was").waitFor();
    await stages(page).locator(".says").filter({ hasText: shown(output[at].text) }).waitFor();
    await page.getByText("same token", { exact: true }).waitFor();
    const rows = await table(page);
    // Columns are the stages; each sums to one, also as it is shown.
    told.stages.forEach((stage, i) => {
      const p = rows.filter((row) => !["kept", "of the stage before", "entropy"].includes(row[0])).map((row) => number(row[i + 1]) || 0);
      assert.ok(Math.abs(p.reduce((a, b) => a + b, 0) - 1) < 0.001 * rows.length, `${stage.name}: ${p}`);
      assert.equal(number(rows.find((row) => row[0] === "kept")[i + 1]), stage.kept, stage.name);
    });
    races += expect_race(told, rows);
    const best = told.stages[0].top[0];
    assert.equal(rows[0][0], shown(best[1]));
    assert.ok(Math.abs(number(rows[0][1]) - best[3]) < 0.0011, `${rows[0]}: not ${best}`); // ">0.999" stands for more
    await stages(page).getByRole("button", { name: "Picture" }).click();
  }
  assert.ok(races > 0, "every draw had one token left");
  await close(page);
});

served("a temperature of zero is greedy, a slider says its effect", async (server) => {
  const { label, kept } = await recorded(server);
  const page = await open(server, { path: bench(label, 5) });
  await stages(page).waitFor();
  await set(page, "Temperature", 0);
  const told = await stages_of(server, label, { position: kept.prompt_tokens + 4, sampling: { temperature: 0 } });
  assert.equal(told.drawn.id, told.stages[0].top[0][0]);
  assert.equal(told.stages.at(-1).kept, 1);
  await stages(page).locator(".says").filter({ hasText: "1 is left" }).filter({ hasText: shown(told.drawn.text) }).waitFor();
  await page.locator("input[type=range][aria-valuetext='Temperature 0 keeps 1 token']").waitFor();
  // Other values, by keyboard.
  const slider = page.getByLabel("Top-p", { exact: true });
  await slider.focus();
  await page.keyboard.press("ArrowLeft");
  assert.equal(await page.getByLabel("Top-p, number").inputValue(), "0.89");
  await page.getByRole("button", { name: "as it was" }).click();
  await stages(page).getByText("is drawn, as it was").waitFor();
  await close(page);
});

served("a thousand draws agree with the probabilities", async (server) => {
  const { label, kept } = await recorded(server, { temperature: 1.3, top_p: 1 });
  const page = await open(server, { path: bench(label, 9) });
  const told = await stages_of(server, label, { position: kept.prompt_tokens + 8, draws: 1000 });
  const last = told.stages.at(-1);
  assert.equal(Object.values(told.draws).reduce((a, b) => a + b, 0), 1000);
  let chi = 0, cells = 0, rest = 1, left = 1000;
  for (const [id, , , p] of last.top) {
    if (p * 1000 < 5) continue;
    const count = told.draws[id] ?? 0;
    chi += (count - p * 1000) ** 2 / (p * 1000);
    ++cells, (rest -= p), (left -= count);
  }
  if (rest * 1000 >= 1) (chi += (left - rest * 1000) ** 2 / (rest * 1000)), ++cells;
  assert.ok(chi < cells + 5 * Math.sqrt(2 * cells) + 5, `chi-square ${chi} of ${cells} cells`);
  await page.getByRole("button", { name: "Draw 1,000" }).click();
  const figure = page.getByRole("figure", { name: "Drawn again and again" });
  await figure.getByRole("button", { name: "Table" }).click();
  const rows = await figure.locator("tbody tr").evaluateAll((list) => list.map((row) => [...row.children].map((c) => c.textContent)));
  assert.equal(rows.reduce((all, row) => all + number(row[1]), 0), 1000);
  assert.deepEqual(rows.slice(0, -1).map((row) => number(row[1])), last.top.slice(0, 10).map(([id]) => told.draws[id] ?? 0));
  await close(page);
});

served("another order cuts at another place", async (server) => {
  const { label, kept } = await recorded(server, { temperature: 1.6, top_p: 0.8 });
  const all = kept.sampling.samplers;
  const at = all.indexOf("temperature"), order = all.filter((name) => name !== "temperature");
  order.splice(all.indexOf("top_p"), 0, "temperature");
  assert.ok(at < all.indexOf("top_p") && order.indexOf("temperature") > order.indexOf("top_p"));
  // A place where it matters: top-p keeps fewer before the temperature has flattened what it sees.
  let place = -1, now;
  for (let i = 0; i < kept.output_tokens && place < 0; ++i) {
    const position = kept.prompt_tokens + i;
    const was = await stages_of(server, label, { position });
    now = await stages_of(server, label, { position, samplers: order });
    if (was.stages.at(-1).kept !== now.stages.at(-1).kept) place = i;
  }
  assert.ok(place >= 0, "the order never matters");
  const page = await open(server, { path: bench(label, place + 1) });
  await stages(page).waitFor();
  while (await page.locator(".samplers h3").evaluateAll((list) => {
    const names = list.map((h) => h.textContent);
    return names.indexOf("Temperature") < names.indexOf("Top-p");
  })) await page.getByRole("button", { name: "Run Temperature later" }).click();
  await stages(page).locator(".says").filter({ hasText: `tokens ${now.stages.at(-1).kept} ` }).or(
    stages(page).locator(".says").filter({ hasText: new RegExp(`\\b${now.stages.at(-1).kept} (is|are) left`) })).first().waitFor();
  const heads = await stages(page).locator(".head strong").allTextContents();
  assert.ok(heads.indexOf("Temperature") > heads.indexOf("Top-p"), `${heads}`);
  // And the address has it: a reload shows the same.
  await page.waitForFunction(() => location.hash.includes("order="));
  await page.reload();
  await stages(page).waitFor();
  await page.waitForFunction(() => document.querySelectorAll(".head strong").length > 2);
  const again = await stages(page).locator(".head strong").allTextContents();
  assert.deepEqual(again, heads);
  await close(page);
});

served("the first difference of a scan is where a real run leaves, and the fork is that run", async (server) => {
  const { label, kept } = await recorded(server);
  const changed = { temperature: 0.3 };
  const real = await recorded(server, changed);
  const ids = (k) => k.tokens.slice(k.prompt_tokens).map((t) => t.id);
  const was = ids(kept), is = ids(real.kept);
  const first = was.findIndex((id, i) => id !== is[i]);
  assert.ok(first >= 0, "the parameters change nothing");
  const scan = await server.json(`/api/requests/${label}/scan`, { sampling: changed });
  assert.equal(scan.first_difference, kept.prompt_tokens + first);

  const page = await open(server, { path: bench(label, 1) });
  await stages(page).waitFor();
  await set(page, "Temperature", changed.temperature);
  await page.getByRole("button", { name: "Scan the answer" }).click();
  await page.getByText(`the first is number ${first + 1}`).waitFor();
  await page.getByText(`Token ${first + 1} of`).waitFor();
  await page.getByRole("button", { name: "Fork there" }).click();
  const fork = page.getByRole("listbox", { name: "Tokens of fork" });
  await fork.locator("[role=option]").nth(is.length - 1).waitFor();
  assert.equal((await fork.locator("[role=option]").allTextContents()).join(""), shown(real.text));
  // Without a change nothing differs.
  await page.getByRole("button", { name: "as it was" }).click();
  await page.getByRole("button", { name: "Scan the answer" }).click();
  await page.getByText("would be another one").waitFor();
  await close(page);
});

served("an answer that repeats itself is found, and a penalty that breaks it does", async (server) => {
  const { label, kept } = await recorded(server, { temperature: 0, max_tokens: 600, ignore_eos: true });
  const page = await open(server, { path: bench(label, 1) });
  const figure = page.getByRole("figure", { name: "It repeats itself" });
  await figure.getByRole("button", { name: "Table" }).click();
  const ids = kept.tokens.slice(kept.prompt_tokens).map((t) => t.id);
  const rows = await figure.locator("tbody tr").evaluateAll((list) => list.map((row) => [...row.children].map((c) => c.textContent)));
  for (const row of rows) {
    const [again, first, length] = row.map(number);
    assert.deepEqual(ids.slice(again - 1, again - 1 + length), ids.slice(first - 1, first - 1 + length));
  }
  await figure.getByRole("button", { name: "Picture" }).click();
  await figure.getByRole("button", { name: "Which penalty would break it?" }).click();
  const link = figure.getByRole("link", { name: "See it" }).first();
  await link.waitFor({ timeout: 120000 });
  const [, name, value] = (await link.getAttribute("href")).match(/set=([a-z_]+)%3A([\d.]+)/);
  const place = Number((await link.getAttribute("href")).match(/pos=(\d+)/)[1]);
  const told = await stages_of(server, label, { position: kept.prompt_tokens + place - 1, sampling: { [name]: Number(value) } });
  assert.notEqual(told.drawn.id, ids[place - 1]);
  await close(page);
});

served("from a token in Ask to its stages; without a request there is a field", async (server) => {
  const page = await open(server, { path: "/#/lab/sampling" });
  await page.getByText("The bench is about a request.").waitFor();
  await page.goto(`${server.url}/#/ask`);
  await setting(page, "Longest answer", 20);
  const label = await ask(page, "Tell me a story about a bird.");
  await tokens(page).nth(3).click();
  await page.getByRole("link", { name: "Stages of this draw" }).click();
  await page.getByText("Token 4 of").waitFor();
  await stages(page).getByText("is drawn, as it was").waitFor();
  assert.ok(page.url().includes(label));
  await page.keyboard.press(".");
  await page.getByText("Token 5 of").waitFor();
  await page.getByRole("button", { name: "Previous" }).click();
  await page.getByText("Token 4 of").waitFor();
  await close(page);
});

served("a stage that is left out does not run, and comes back to its place", async (server) => {
  const { label, kept } = await recorded(server, { temperature: 1.4, top_p: 0.7 });
  const all = kept.sampling.samplers, order = all.filter((name) => name !== "top_p");
  let place = -1, now;
  for (let i = 0; i < kept.output_tokens && place < 0; ++i) {
    const position = kept.prompt_tokens + i;
    const was = await stages_of(server, label, { position });
    now = await stages_of(server, label, { position, samplers: order });
    if (was.stages.at(-1).kept !== now.stages.at(-1).kept) place = i;
  }
  assert.ok(place >= 0, "leaving it out never matters");
  const page = await open(server, { path: bench(label, place + 1) });
  await stages(page).waitFor();
  const heads = () => stages(page).locator(".head strong").allTextContents();
  const before = await heads();
  assert.ok(before.includes("Top-p"));
  await page.getByRole("button", { name: "Leave out Top-p" }).click();
  await page.waitForFunction(() => ![...document.querySelectorAll(".head strong")].some((h) => h.textContent === "Top-p"));
  await stages(page).locator(".says").filter({ hasText: `tokens ${now.stages.at(-1).kept.toLocaleString("en")} ` }).waitFor();
  await page.waitForFunction(() => location.hash.includes("order="));
  assert.deepEqual(new URL(page.url().replace("#/", "")).searchParams.get("order").split(","), order);
  await page.getByRole("button", { name: "Run Top-p" }).click();
  await page.waitForFunction(() => [...document.querySelectorAll(".head strong")].some((h) => h.textContent === "Top-p"));
  assert.deepEqual(await heads(), before);
  await page.waitForFunction(() => !location.hash.includes("order="));
  // All of them, and the address still says so.
  for (let left; (left = await page.getByRole("button", { name: /^Leave out / }).count()) > 0;) {
    await page.getByRole("button", { name: /^Leave out / }).first().click();
    await page.waitForFunction((n) => document.querySelectorAll("button[aria-label^='Leave out']").length < n, left);
  }
  await page.waitForFunction(() => location.hash.includes("order=logit_bias")); // which always runs
  await page.reload();
  await stages(page).waitFor();
  assert.ok(!(await heads()).some((name) => ["Temperature", "Top-p"].includes(name)));
  await close(page);
});

served("the chapter of the loop: sliders, a thousand draws, a scan, and a fork that is a real run", async (server) => {
  const { label, kept } = await recorded(server);
  const real = await recorded(server, { temperature: 0 });
  const ids = (k) => k.tokens.slice(k.prompt_tokens).map((t) => t.id);
  const first = ids(kept).findIndex((id, i) => id !== ids(real.kept)[i]);
  assert.ok(first >= 0, "greedy changes nothing");
  const page = await open(server, { path: `/#/journey/3?req=${label}` });
  const act = page.locator("button.do");
  const next = async () => (await page.evaluate(() => document.activeElement?.blur()), page.keyboard.press("]"));
  await stages(page).waitFor();
  assert.deepEqual(await page.locator(".samplers h3").allTextContents(), ["Temperature", "Top-k", "Top-p", "Min-p"]);
  // A slider: the stages are those of the API.
  await set(page, "Top-k", 2);
  const told = await stages_of(server, label, { position: kept.prompt_tokens + 4, sampling: { top_k: 2 } });
  await stages(page).locator(".says").filter({ hasText: new RegExp(`\\b${told.stages.at(-1).kept} (is|are) left`) }).waitFor();
  await page.getByRole("button", { name: "Leave out Top-k" }).click();
  await stages(page).locator(".head strong").filter({ hasText: "Top-k" }).waitFor({ state: "detached" });
  await page.getByRole("button", { name: "as it was" }).click();
  await next();
  assert.equal(await act.innerText(), "Draw a thousand times");
  await act.click();
  const draws = page.getByRole("figure", { name: "Drawn again and again" });
  await draws.getByRole("button", { name: "Table" }).click();
  const counted = await draws.locator("tbody tr td:nth-child(2)").allTextContents();
  const { draws: expected, stages: ran } = await stages_of(server, label, { position: kept.prompt_tokens + 4, draws: 1000 });
  assert.equal(counted.reduce((sum, cell) => sum + number(cell), 0), 1000);
  assert.equal(number(counted[0]), expected[ran.at(-1).top[0][0]] ?? 0);
  await next();
  assert.equal(await act.innerText(), "Scan with a temperature of zero");
  await act.click();
  await page.getByText(`the first is number ${first + 1}`).waitFor();
  await page.getByText(`Token ${first + 1}:`).waitFor();
  assert.equal(await act.innerText(), "Fork at the first other token");
  await act.click();
  const fork = page.getByRole("listbox", { name: "Tokens of fork" });
  await fork.locator("[role=option]").nth(ids(real.kept).length - 1).waitFor();
  assert.equal((await fork.locator("[role=option]").allTextContents()).join(""), shown(real.text));
  await close(page);
});

served("the model's view has every line of the plan, and the pages that are there", async (server) => {
  const page = await open(server, { path: "/#/model" });
  const { memory } = await server.json("/api/info");
  const { pools } = await server.json("/api/snapshot");
  const figure = page.getByRole("figure", { name: "Memory" });
  await figure.getByText("as planned").waitFor();
  assert.equal(pools.reduce((sum, pool, i) => sum + (pool.total + memory.groups[i].spare_pages) * pool.page_bytes, 0), memory.kv_bytes);
  await figure.getByRole("button", { name: "Table" }).click();
  const lines = Object.fromEntries(await figure.locator("tbody tr").evaluateAll((rows) => rows.map((row) => [row.children[0].textContent, row.children[1].textContent])));
  const bytes = (text) => { const [, n, unit] = text.replaceAll(",", "").match(/([\d.]+)\s*(\w+)/); return Number(n) * 1024 ** ["B", "KiB", "MiB", "GiB"].indexOf(unit); };
  const expected = { weights: memory.packed_bytes, "KV cache": memory.kv_bytes, activations: memory.activation_bytes, together: memory.total_bytes,
    "log of steps": memory.trace_bytes, "recorded texts, at most": memory.record_bytes_most, "lives of requests, at most": memory.lives_bytes_most, "rows of logits, at most": memory.logit_rows_bytes_most,
    "compiled constraints, at most": memory.constraint_cache_bytes_most, "tokenizer’s cache, at most": memory.tokenizer_cache_bytes_most };
  assert.deepEqual(Object.keys(lines), Object.keys(expected));
  for (const [name, value] of Object.entries(expected)) assert.ok(Math.abs(bytes(lines[name]) - value) <= 0.005 * value, `${name}: ${lines[name]}, not ${value}`);
  await page.getByText("What the chat template writes around messages").click();
  const messages = ["Hello!", "Hi. What can I do for you?", "Tell me a story."].map((content, i) => ({ role: i % 2 ? "assistant" : "user", content }));
  const { prompt } = await server.json("/apply-template", { messages });
  await page.locator("pre").filter({ hasText: "Tell me a story." }).waitFor();
  assert.equal(await page.locator("pre").textContent(), prompt);
  await page.getByRole("button", { name: "Keyboard shortcuts" }).click();
  await page.getByRole("dialog").getByRole("heading", { name: "Keys" }).waitFor();
  await close(page);
});
