// Ask: what is on the page is what the API says.
import assert from "node:assert/strict";
import { ask, close, figure_json, open, send, setting, slow, tokens, with_server } from "./browser.mjs";

const served = with_server();
const question = "Tell me a story about a bird.";
const seeded = { seed: 77, temperature: 0.8, max_tokens: 40 };

async function ask_seeded(page) {
  await setting(page, "Seed", seeded.seed);
  await setting(page, "Temperature, number", seeded.temperature);
  await setting(page, "Longest answer", seeded.max_tokens);
  return ask(page, question);
}
const of_api = (server) => server.json("/v1/chat/completions",
  { messages: [{ role: "user", content: question }], ...seeded, logprobs: true, top_logprobs: 10 });
const shown = (text) => text.replaceAll(" ", "·").replaceAll("\n", "⏎");

served("tokens joined are the answer's text, with their alternatives", async (server) => {
  const page = await open(server);
  await ask_seeded(page);
  const [choice] = (await of_api(server)).choices;
  const chips = await tokens(page).allTextContents();
  assert.equal(chips.join(""), shown(choice.message.content));
  assert.equal(chips.length, choice.logprobs.content.length);
  for (const at of [0, 7, chips.length - 1]) {
    await tokens(page).nth(at).hover();
    const figure = page.getByRole("figure", { name: "Alternatives" });
    if (at === 0) await figure.getByRole("button", { name: "Table" }).click();
    const rows = await figure.locator("tbody tr").allTextContents();
    const { top_logprobs, token } = choice.logprobs.content[at];
    top_logprobs.forEach((a, i) =>
      assert.ok(rows[i].startsWith(shown(a.token)), `${rows[i]} against ${a.token}`));
    assert.ok(rows.some((row) => row.startsWith(shown(token))));
    assert.match(rows.at(-1), /^all others/);
  }
  await close(page);
});

served("the keyboard goes from token to token", async (server) => {
  const page = await open(server);
  await ask_seeded(page);
  await page.getByRole("listbox", { name: "Tokens of the answer" }).focus();
  for (const key of ["ArrowRight", "ArrowRight", ".", ","]) await page.keyboard.press(key);
  assert.equal(await page.locator("[role=option][aria-selected=true]").count(), 1);
  assert.equal(await tokens(page).nth(1).getAttribute("aria-selected"), "true");
  await page.getByText("Token 2 is").waitFor();
  await page.keyboard.press("End");
  assert.equal(await tokens(page).last().getAttribute("aria-selected"), "true");
  await close(page);
});

served("stop ends the request in the engine too", async (server) => {
  const page = await open(server);
  await page.getByLabel("Your message").fill("Tell me a very long story.");
  // At the first tokens, within the page: the answer is there in a blink.
  await page.evaluate(() => new MutationObserver((_, observer) => {
    if (document.querySelectorAll("[role=listbox] [role=option]").length < 2) return;
    observer.disconnect();
    dispatchEvent(new KeyboardEvent("keydown", { key: "Escape" }));
  }).observe(document.body, { childList: true, subtree: true }));
  await page.keyboard.press("Control+Enter");
  await page.getByText("Ended: you stopped it.").waitFor();
  await server.expect_idle(5000);
  await close(page);
});

served("a reload finds the conversation by its URL", async (server) => {
  const page = await open(server);
  const label = await ask_seeded(page);
  const before = await tokens(page).allTextContents();
  await page.reload();
  await tokens(page).first().waitFor();
  assert.deepEqual(await tokens(page).allTextContents(), before);
  assert.ok(page.url().includes(label));
  // A second turn sends the first along: its prompt is found in the cache.
  await ask(page, "And then?");
  assert.equal(await page.getByRole("article", { name: "You" }).count(), 2);
  await close(page);
});

served("a prompt that is too long is refused in words, nothing is cut", async (server) => {
  const page = await open(server);
  const { limits } = await server.json("/api/info");
  await page.getByLabel("Your message").fill("word ".repeat(limits.context + 10));
  await page.getByText("Nothing is cut without being asked.").waitFor();
  assert.ok(await send(page).isDisabled());
  await page.getByLabel("Your message").fill("short");
  await page.getByText("Nothing is cut without being asked.").waitFor({ state: "detached" });
  assert.ok(await send(page).isEnabled());
  await close(page);
});

served("a raw prompt is continued", async (server) => {
  const page = await open(server);
  await page.getByRole("button", { name: "Raw prompt" }).click();
  await setting(page, "Longest answer", 12);
  await setting(page, "Temperature, number", 0);
  await ask(page, "Once upon a time");
  const { choices } = await server.json("/v1/completions",
    { prompt: "Once upon a time", max_tokens: 12, temperature: 0 });
  assert.equal((await tokens(page).allTextContents()).join(""), shown(choices[0].text));
  await close(page);
});

served("what the model writes is text, never markup", async (server) => {
  const page = await open(server);
  await ask(page, "<img src=x onerror=alert(1)><script>alert(2)</script>");
  assert.equal(await page.locator("main img, main script").count(), 0);
  assert.match(await page.getByRole("article", { name: "You" }).innerText(), /<img src=x/);
  await close(page);
});

served("a refusal of the server is shown in its words and the question stays", async (server) => {
  const page = await open(server);
  await setting(page, "Top-p, number", 7);
  await page.getByLabel("Your message").fill(question);
  await send(page).click();
  await page.getByText("It failed.").waitFor({ timeout: 20000 * slow });
  assert.equal(await page.getByLabel("Your message").inputValue(), question);
  page.problems = page.problems.filter((p) => !/400/.test(p)); // the browser logs it
  await close(page);
});

const number = (text) => Number(text.replace(/[^\d.]/g, ""));
// Name and figure of each part of the gauge below the field.
const gauge = (page) => page.locator(".gauge .legend li").evaluateAll((list) =>
  Object.fromEntries(list.map((li) => [li.children[1].textContent, Number(li.querySelector(".num").firstChild.data.replaceAll(",", ""))])));
const query = (page) => Object.fromEntries(new URL(page.url().replace("#/", "")).searchParams);

served("the context is shown by kind, also while one types, and by message", async (server) => {
  const page = await open(server);
  await ask_seeded(page);
  const label = await ask(page, "And what did it sing in the end, when all of the others had gone home for the winter?");
  const [account] = await server.ended_of(label);
  assert.ok(account.cached_tokens > 0 && account.cached_tokens < account.prompt_tokens, `${account.cached_tokens} of ${account.prompt_tokens}`);
  const kinds = { cached: account.cached_tokens, input: account.prompt_tokens - account.cached_tokens, output: account.completion_tokens };
  assert.deepEqual(await gauge(page), kinds);
  await page.getByLabel("Your message").fill("Go on!");
  await page.locator(".gauge").getByText("typed").waitFor();
  const { tokens: typed } = await server.json("/tokenize", { content: "Go on!", add_special: false });
  assert.deepEqual(await gauge(page), { ...kinds, typed: typed.length });
  // By message: the API's spans of the same messages, of which the first came from the cache.
  const rows = await figure_json(page, "Context by message");
  const said = await server.json(`/api/requests/${label}/tokens`);
  const messages = [question, rows[2].text, rows[3].text].map((content, i) => ({ role: i % 2 ? "assistant" : "user", content }));
  const { tokens: prompt, token_spans } = await server.json("/apply-template", { messages, spans: true });
  assert.deepEqual(prompt, said.tokens.slice(0, said.prompt_tokens).map((t) => t.id));
  const expected = [null, 0, 1, 2].map((message) => {
    const mine = token_spans.filter((s) => s.message === message).flatMap((s) => said.tokens.slice(s.begin, s.end));
    return { cached: mine.filter((t) => t.kind === "cached").length, input: mine.filter((t) => t.kind === "input").length };
  });
  assert.deepEqual(rows.slice(0, 4).map(({ cached, input }) => ({ cached, input })), expected);
  assert.equal(rows[4].output, account.completion_tokens);
  // And as chips of the questions.
  await page.getByLabel("show").selectOption("kind");
  for (const [i, message] of [[0, 0], [1, 2]]) {
    const chips = page.getByRole("article", { name: "You" }).nth(i).locator(".token");
    const mine = token_spans.filter((s) => s.message === message).flatMap((s) => said.tokens.slice(s.begin, s.end));
    assert.deepEqual(await chips.allTextContents(), mine.map((t) => shown(t.text)));
    assert.equal(await chips.and(page.locator(".cached")).count(), mine.filter((t) => t.kind === "cached").length);
  }
  await close(page);
});

served("a raw prompt keeps its kinds although it stays in the field", async (server) => {
  const page = await open(server, { path: "/#/ask?mode=raw" });
  await setting(page, "Longest answer", 8);
  const label = await ask(page, "Once upon a time there was a fox");
  assert.equal(query(page).mode, "raw");
  const [account] = await server.ended_of(label);
  assert.equal(await page.getByLabel("Text to continue").inputValue(), "Once upon a time there was a fox");
  await page.locator(".gauge").getByText("output").waitFor();
  assert.deepEqual(await gauge(page), { cached: account.cached_tokens, input: account.prompt_tokens - account.cached_tokens, output: account.completion_tokens });
  await close(page);
});

served("what is selected is in the address, and another tab shows it from the server", async (server) => {
  const page = await open(server);
  await ask_seeded(page);
  const label = await ask(page, "And then?");
  const before = await page.evaluate(() => history.length);
  await page.getByRole("listbox").nth(1).locator("[role=option]").nth(3).click();
  await page.getByLabel("show").selectOption("latency");
  assert.deepEqual(query(page), { req: label, pos: "4", tint: "latency" });
  assert.equal(await page.evaluate(() => history.length), before, "the history has grown");
  const chips = await page.getByRole("listbox").nth(1).locator("[role=option]").allTextContents();
  const words = await page.getByRole("article", { name: "You" }).locator(".words").allTextContents();
  const first = (await page.getByRole("listbox").first().locator("[role=option]").allTextContents()).join("");
  const hash = new URL(page.url()).hash;
  await close(page);

  const other = await open(server, { path: `/${hash}` });
  await tokens(other).first().waitFor();
  assert.deepEqual(await tokens(other).allTextContents(), chips);
  assert.deepEqual(await other.getByRole("article", { name: "You" }).locator(".words").allTextContents(), words);
  assert.equal(shown(await other.getByRole("article", { name: "The model" }).first().locator(".words").textContent()), first);
  assert.equal(await tokens(other).nth(3).getAttribute("aria-selected"), "true");
  assert.equal(await other.getByLabel("show").inputValue(), "latency");
  // Its alternatives are run again, and are those that were sent.
  const kept = await server.json(`/api/requests/${label}/tokens`);
  const { stages: [model] } = await server.json(`/api/requests/${label}/stages`, { position: kept.prompt_tokens + 3 });
  const card = other.getByRole("figure", { name: "Alternatives" });
  await card.locator("[data-provenance=probe]").waitFor();
  assert.deepEqual((await card.locator(".bars .name").allTextContents()).slice(0, 3), model.top.slice(0, 3).map(([, text]) => shown(text)));
  // And it goes on from there: the same prompt as in the first tab, and one more.
  await ask(other, "Go on.");
  assert.equal(await other.getByRole("article", { name: "You" }).count(), 3);
  await other.evaluate(() => (location.hash = "#/ask?req=no-such-request"));
  await other.getByText("This conversation cannot be shown.").waitFor();
  other.problems = other.problems.filter((p) => !/404/.test(p)); // the browser logs it
  await close(other);
});

served("a request that the server did not record is told from one that is not there", async (server) => {
  const answer = await server.post("/v1/completions", { prompt: "Once", max_tokens: 2 });
  const label = answer.headers.get("x-request-id");
  await answer.json();
  const page = await open(server, { path: `/#/ask?req=${label}` });
  const notice = page.getByRole("alert").filter({ hasText: "This conversation cannot be shown." });
  await notice.waitFor();
  const { error } = await (await fetch(`${server.url}/api/requests/${label}/tokens`)).json();
  assert.ok((await notice.innerText()).includes(error.message));
  await notice.getByRole("link").click();
  await page.getByRole("figure", { name: "Life" }).waitFor();
  page.problems = page.problems.filter((p) => !/404/.test(p));
  await close(page);
});

served("a request that runs grows in another tab too", async (server) => {
  const stopper = new AbortController();
  const answer = await fetch(`${server.url}/v1/completions`, { method: "POST", signal: stopper.signal,
    body: JSON.stringify({ prompt: "Once upon a time", max_tokens: 6, ignore_eos: true, stream: true, vitrine: { record: true, allow: 3 } }) });
  const label = answer.headers.get("x-request-id");
  const page = await open(server, { path: `/#/ask?req=${label}` });
  await tokens(page).nth(2).waitFor();
  assert.equal(await tokens(page).count(), 3);
  await server.json(`/api/requests/${label}/hold`, { release: true });
  await tokens(page).nth(5).waitFor();
  await page.getByText("Ended: it reached its limit of length.").waitFor();
  stopper.abort();
  await close(page);
});

served("the stations of a token are the API's and sum to when its step had ended", async (server) => {
  const page = await open(server);
  const label = await ask_seeded(page);
  const { requests: [account] } = await server.json(`/api/requests/${label}`);
  for (const at of [0, 9, account.completion_tokens - 1]) {
    await tokens(page).nth(at).click();
    await page.getByRole("figure", { name: "Stations of this token" }).getByText(`Token ${at + 1} was there`).waitFor();
    const told = await figure_json(page, "Stations of this token");
    const step = account.records.filter((r) => r.sampled)[at];
    assert.equal(told.position, account.prompt_tokens + at);
    assert.deepEqual(told.step, step);
    const sum = told.stations.reduce((all, s) => all + s.ms, 0);
    assert.ok(Math.abs(sum - (step.end_ns - account.stamps.received) / 1e6) < 1e-6, `${sum} ms`);
    const { plan_ns, forward_ns, wall_ns } = await server.json(`/api/steps/${step.step}`);
    const ms = (name) => told.stations.find((s) => s.name === name).ms;
    assert.equal(ms("plan"), plan_ns / 1e6);
    assert.equal(ms("layers"), forward_ns / 1e6);
    assert.equal(wall_ns, step.wall_ns);
    await tokens(page).nth(at).click();
  }
  await close(page);
});

served("presets are the server's, and what is sent", async (server) => {
  const page = await open(server);
  const { presets, sampling_defaults } = await server.json("/api/info");
  await setting(page, "Longest answer", 3);
  for (const name of ["brainstorm", "code"]) {
    const { values } = presets.find((p) => p.name === name);
    await page.getByRole("button", { name, exact: true }).click();
    const label = await ask(page, "Say a word.");
    const { sampling } = await server.json(`/api/requests/${label}/tokens`);
    // What another preset had set is gone.
    for (const [param, value] of Object.entries({ ...sampling_defaults, ...values }))
      assert.ok(Math.abs(sampling[param] - value) < 1e-6, `${name}: ${param} is ${sampling[param]}, not ${value}`);
    assert.equal(await page.getByRole("button", { name, exact: true }).getAttribute("aria-pressed"), "true");
  }
  await setting(page, "Temperature, number", 0);
  assert.match(await page.getByLabel("Temperature", { exact: true }).getAttribute("aria-valuetext"), /^0, always the most likely token/);
  await close(page);
});

served("the turn that would be dropped is named, with its tokens, and goes when it is told to", async (server) => {
  const page = await open(server);
  await ask_seeded(page);
  const { limits } = await server.json("/api/info");
  await page.getByLabel("Your message").fill("word ".repeat(limits.context));
  const alert = page.getByRole("alert").filter({ hasText: "Nothing is cut without being asked." });
  await alert.waitFor();
  assert.ok((await alert.innerText()).includes(`“${question}”`));
  const { token_spans } = await server.json("/apply-template", { spans: true, messages: [{ role: "user", content: question },
    { role: "assistant", content: (await of_api(server)).choices[0].message.content }] });
  const both = token_spans.filter((s) => s.message !== null).reduce((sum, s) => sum + s.end - s.begin, 0);
  assert.equal(number(await alert.locator("[data-field='context.typed']").innerText()), both);
  await alert.getByRole("button", { name: "Drop the first question and its answer" }).click();
  await page.getByRole("article", { name: "You" }).waitFor({ state: "detached" });
  await close(page);
});

served("reasoning and calls of tools are told from the answer, on the tokens and in the gauge", async (server) => {
  const page = await open(server);
  await page.getByText("live", { exact: true }).waitFor();
  // This model does neither: a stream as the server sends it for one that does.
  const kinds = ["reasoning", "reasoning", "output", "tool", "tool", "tool"];
  const frame = (kind, i) => ({ choices: [{ index: 0, finish_reason: null,
    delta: kind === "tool" ? { tool_calls: [{ index: 0, function: { arguments: "x" } }] } : { [kind === "output" ? "content" : "reasoning_content"]: "x" },
    logprobs: { content: [{ token: ` t${i}`, logprob: -0.1, bytes: null, top_logprobs: [] }] } }] });
  const frames = [...kinds.map(frame), { choices: [{ index: 0, delta: {}, logprobs: null, finish_reason: "tool_calls" }] },
    { choices: [], usage: { prompt_tokens: 10, completion_tokens: 6, prompt_tokens_details: { cached_tokens: 4 }, completion_tokens_details: { reasoning_tokens: 2 } } }];
  await page.route("**/v1/chat/completions", (route) => route.fulfill({ headers: { "content-type": "text/event-stream", "x-request-id": "made-up" },
    body: [...frames.map((f) => JSON.stringify(f)), "[DONE]"].map((f) => `data: ${f}\n\n`).join("") }));
  await page.getByLabel("Your message").fill("Call a tool.");
  await send(page).click();
  await page.getByText("Ended: it calls a tool.").waitFor();
  for (const [i, kind] of kinds.entries()) assert.ok(await tokens(page).nth(i).evaluate((e, k) => e.classList.contains(k), kind), `${i} is no ${kind}`);
  assert.deepEqual(await gauge(page), { cached: 4, input: 6, output: 1, reasoning: 2, "tool call": 3 });
  // What goes into the next prompt is the answer proper.
  await page.unroute("**/v1/chat/completions");
  const sent = page.waitForRequest("**/v1/chat/completions");
  await page.getByLabel("Your message").fill("And?");
  await send(page).click();
  assert.deepEqual((await sent).postDataJSON().messages.map((m) => m.content), ["Call a tool.", "x", "And?"]);
  await page.getByText(/^Ended:/).nth(1).waitFor();
  page.problems = page.problems.filter((p) => !/404/.test(p)); // nobody knows the request that was made up
  await close(page);
});

served("a screen reader is told whole sentences, or only the end", async (server) => {
  const page = await open(server);
  await setting(page, "Seed", seeded.seed);
  await page.getByLabel("Token by token").check();
  await page.getByLabel("Your message").fill(question);
  await page.keyboard.press("Control+Enter");
  const status = page.locator("h1 + [role=status]");
  await page.getByText("paused", { exact: true }).waitFor();
  assert.equal(await status.textContent(), "The answer begins.");
  // Up to the first token behind the end of a sentence.
  const field = page.getByLabel("Your message");
  for (let i = 0; i < 80; ++i) {
    const text = (await tokens(page).allTextContents()).join("").replaceAll("·", " ");
    if (/[.!?][ ⏎]/.test(text)) break;
    const count = await tokens(page).count();
    await field.press(".");
    await tokens(page).nth(count).waitFor();
  }
  await page.waitForFunction(() => document.querySelector("h1 + [role=status]").textContent !== "The answer begins.");
  const text = (await tokens(page).allTextContents()).join("").replaceAll("·", " ").replaceAll("⏎", "\n");
  const said = await status.textContent();
  assert.ok(text.startsWith(said) && /[.!?]$/.test(said), `${said} of ${text}`);
  await page.getByRole("button", { name: "Stop" }).click();
  await page.getByText("Ended: you stopped it.").waitFor();
  await page.waitForFunction(() => document.querySelector("h1 + [role=status]").textContent.endsWith("The answer is complete."));
  // Without it: beginning and end. It stays so.
  await page.locator("details").evaluate((details) => (details.open = true));
  await page.getByLabel("Read answers aloud to screen readers").uncheck();
  await page.reload();
  await tokens(page).first().waitFor();
  await page.getByLabel("Token by token").uncheck();
  await ask(page, "And then?");
  await page.waitForFunction(() => document.querySelector("h1 + [role=status]").textContent === "The answer is complete.");
  await close(page);
});
