// Text to integers: what the page shows of it is the API's, and the API's steps, done again, give the tokens.
import assert from "node:assert/strict";
import { ask, close, open, with_server } from "./browser.mjs";

const served = with_server();
const texts = {
  plain: "How many r are there in strawberry?",
  emoji: "A fox 🦊, a family 👩‍👩‍👧‍👦 and a flag 🇧🇪",
  "right to left": "שלום עולם, مرحبا بالعالم",
  controls: "tab\tnew\nline\u0000\u202e",
  "a long word": "antidisestablishmentarianism".repeat(40),
  spaces: "   a    b   ",
};
const trace = (server, content) => server.json("/tokenize", { content, trace: true });
const number = (text) => Number(text.replaceAll(",", "").replace("−", "-").match(/-?[\d.]+/)?.[0]);

// By the definition: a merge takes two neighbours, and gives the left one a new id.
function replayed(told) {
  const ids = [...told.prefix];
  for (const word of told.words) {
    if (word.way !== "merges") {
      ids.push(...word.ids);
      continue;
    }
    const symbols = word.start.map(([, , id], at) => ({ at, id }));
    for (const [left, right, , id] of word.merges) {
      const i = symbols.findIndex((s) => s.at === left);
      assert.equal(symbols[i + 1]?.at, right, "merges join neighbours");
      symbols[i].id = id;
      symbols.splice(i + 1, 1);
    }
    assert.deepEqual(symbols.map((s) => s.id), word.ids);
    ids.push(...word.ids);
  }
  return [...ids, ...told.suffix];
}

served("merges, done again, give the tokens", async (server) => {
  for (const [name, text] of Object.entries(texts)) {
    const told = await trace(server, text);
    assert.deepEqual(replayed(told), told.tokens, name);
    const { tokens } = await server.json("/tokenize", { content: text });
    assert.deepEqual(told.tokens, tokens, name);
  }
  // A text that is not Unicode: half of a pair, and bytes that are no UTF-8.
  for (const body of ['{"trace":true,"content":"a\\ud83d b"}', Buffer.from([...Buffer.from('{"trace":true,"content":"a'), 0xff, 0xc3, ...Buffer.from('"}')])]) {
    const response = await fetch(`${server.url}/tokenize`, { method: "POST", body });
    const answer = await response.json();
    if (response.status === 200) assert.deepEqual(replayed(answer), answer.tokens);
    else assert.match(answer.error.message, /body|JSON|UTF-8/i);
  }
});

const field = (page) => page.getByLabel("Text to take apart");
// The ids of the words that the page shows.
const shown = (page) => page.getByRole("listbox", { name: "Words of the text" }).evaluate((list) =>
  [...list.querySelectorAll(".chip .num")].map((n) => Number(n.textContent.replaceAll(",", ""))));
async function settled(page, ids) {
  await page.waitForFunction((wanted) => {
    const list = document.querySelector("[role=listbox][aria-label='Words of the text']");
    return list && list.querySelectorAll(".chip .num").length === wanted;
  }, ids.length);
}

served("the page shows the API's tokens and merges", async (server) => {
  const page = await open(server, { path: "/#/lab/tokens" });
  for (const text of [texts.emoji, texts["right to left"], texts.controls.replace("\u0000", ""), texts.plain]) {
    await field(page).fill(text);
    const told = await trace(server, text);
    await settled(page, told.tokens);
    assert.deepEqual(await shown(page), told.tokens, text);
  }
  const told = await trace(server, texts.plain);
  const most = told.words.reduce((best, word, i) => ((word.merges?.length ?? 0) > (told.words[best].merges?.length ?? 0) ? i : best), 0);
  const word = told.words[most], figure = page.getByRole("figure", { name: "How the word became tokens" });
  await figure.getByRole("button", { name: "Table" }).click();
  const rows = await figure.locator("tbody tr").evaluateAll((list) => list.map((row) => [...row.children].map((cell) => cell.textContent)));
  assert.deepEqual(rows.map(([n, , rank, id]) => [number(n), number(rank), number(id)]),
    word.merges.map(([, , rank, id], i) => [i + 1, rank, id]).slice(0, 25));
  await figure.getByRole("button", { name: "Picture" }).click();
  // By keyboard, from the end to the beginning and on again: each state is the replay's.
  const parts = () => figure.locator(".part .num").evaluateAll((list) => list.map((n) => Number(n.textContent.replaceAll(",", ""))));
  assert.deepEqual(await parts(), word.ids);
  await figure.getByRole("slider").focus();
  for (let i = 0; i < word.merges.length; ++i) await page.keyboard.press("[");
  await figure.getByText(/byte by byte|character by character/).waitFor();
  assert.deepEqual(await parts(), word.start.map(([, , id]) => id));
  const symbols = word.start.map(([, , id], at) => ({ at, id }));
  for (const [left, , , id] of word.merges) {
    await page.keyboard.press("]");
    const i = symbols.findIndex((s) => s.at === left);
    symbols[i].id = id;
    symbols.splice(i + 1, 1);
    await page.waitForFunction((n) => document.querySelectorAll(".part").length === n, symbols.length);
    assert.deepEqual(await parts(), symbols.map((s) => s.id));
  }
  await close(page);
});

served("a link shows the same word at the same merge", async (server) => {
  const page = await open(server, { path: `/#/lab/tokens?text=${encodeURIComponent("unbelievable foxes")}&word=0&merge=1` });
  const figure = page.getByRole("figure", { name: "How the word became tokens" });
  await figure.getByRole("slider").waitFor();
  assert.equal(await figure.getByRole("slider").inputValue(), "1");
  assert.equal(await field(page).inputValue(), "unbelievable foxes");
  await figure.getByRole("button", { name: "A merge on" }).click();
  await page.waitForFunction(() => location.hash.includes("merge=2"));
  await page.reload();
  await figure.getByRole("slider").waitFor();
  assert.equal(await figure.getByRole("slider").inputValue(), "2");
  // Words by keyboard.
  await page.getByRole("listbox", { name: "Words of the text" }).focus();
  await page.keyboard.press("ArrowRight");
  await page.waitForFunction(() => location.hash.includes("word=1"));
  await close(page);
});

served("a text is asked for once", async (server) => {
  const page = await open(server);
  const asked = [];
  page.on("request", (request) => { if (/tokenize|apply-template/.test(request.url())) asked.push(new URL(request.url()).pathname); });
  await page.evaluate(() => (location.hash = "#/lab/tokens"));
  await page.locator(".prompt .token").first().waitFor();
  await page.locator(".chip").first().waitFor();
  await page.waitForTimeout(1500);
  assert.deepEqual(asked.sort(), ["/apply-template", "/tokenize"]);
  await page.getByRole("figure", { name: "Tokens of the text" }).getByRole("option").first().click();
  await page.waitForTimeout(500);
  assert.equal(asked.length, 2, "choosing a word asks for nothing");
  await close(page);
});

served("letters are counted, and a text that is too long is refused in words", async (server) => {
  const page = await open(server, { path: "/#/lab/tokens" });
  await field(page).fill("strawberry");
  const told = await trace(server, "strawberry");
  await settled(page, told.tokens);
  const figure = page.getByRole("figure", { name: "Letters" });
  await figure.getByRole("button", { name: "r", exact: true }).first().click();
  const says = await page.locator("[role=figure]", { hasText: "You see" }).locator(".says").textContent();
  assert.match(says, /You count 3 × r among 10 letters/);
  await figure.getByRole("button", { name: "Table" }).click();
  assert.equal(number(await figure.getByRole("row", { name: /^r/ }).locator("td").nth(1).textContent()), 3);
  await field(page).fill("");
  await page.getByText("Nothing to take apart yet").waitFor();
  await field(page).fill("ab ".repeat(30000));
  await page.getByText("found 90000 bytes, allowed up to 65536 with trace").waitFor();
  page.problems = page.problems.filter((p) => !/400/.test(p)); // the browser logs it
  await close(page);
});

served("a conversation's parts are the API's", async (server) => {
  const page = await open(server);
  await ask(page, "Hello 🦊 <|im_end|> there");
  await page.evaluate(() => (location.hash = "#/lab/tokens"));
  const figure = page.getByRole("figure", { name: "A conversation is one text" });
  await figure.locator(".prompt .token").first().waitFor();
  const messages = await figure.locator(".messages li").evaluateAll((list) => list.map((item) =>
    ({ role: item.querySelector("select").value, content: item.querySelector("textarea").value })));
  assert.equal(messages[0].content, "Hello 🦊 <|im_end|> there");
  const told = await server.json("/apply-template", { messages, spans: true });
  const bytes = Buffer.from(told.prompt);
  // Spans partition bytes and tokens, and the caller's are the messages, in order.
  for (const [spans, size] of [[told.spans, bytes.length], [told.token_spans, told.tokens.length]]) {
    let at = 0;
    for (const span of spans) assert.equal(span.begin, at), (at = span.end);
    assert.equal(at, size);
  }
  for (const [i, message] of messages.entries()) {
    const own = told.spans.filter((s) => s.message === i);
    assert.equal(own.map((s) => bytes.subarray(s.begin, s.end).toString()).join("").trim(), message.content.trim());
    assert.ok(own.every((s) => s.kind === message.role));
  }
  await figure.getByRole("button", { name: "Table" }).click();
  const rows = await figure.locator("tbody tr").evaluateAll((list) => list.map((row) => [...row.children].map((cell) => cell.textContent)));
  assert.deepEqual(rows.map(([, message, tokens]) => [message === "" ? null : number(message), number(tokens)]),
    told.token_spans.map((s) => [s.message, s.end - s.begin]).slice(0, 25));
  assert.deepEqual(rows.map(([kind]) => kind), told.token_spans.map((s) => (s.kind === "special" ? "special tokens" : s.kind)).slice(0, 25));
  await close(page);
});

served("the chapter goes from beat to beat by keyboard, and every Do shows something", async (server) => {
  const page = await open(server, { path: "/#/journey/2" });
  const figures = ["Tokens of the text", "How the word became tokens", "Letters", "How the word became tokens", "A conversation is one text"];
  for (const [beat, name] of figures.entries()) {
    const figure = page.getByRole("figure", { name });
    await figure.waitFor();
    const task = page.locator("button.do");
    if (await task.count()) {
      await task.focus();
      await page.keyboard.press("Enter");
    }
    await figure.locator(".chip, .part, .letters button, .prompt .token").first().waitFor();
    if (beat === 1) await figure.getByText(/byte by byte|character by character/).waitFor();
    await page.evaluate(() => document.activeElement?.blur());
    await page.keyboard.press("]");
  }
  await close(page);
});
