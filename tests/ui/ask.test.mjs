// Ask: what is on the page is what the API says.
import assert from "node:assert/strict";
import { ask, close, open, send, setting, slow, tokens, with_server } from "./browser.mjs";

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
