// Forks of an answer, and one token at a time.
import assert from "node:assert/strict";
import { ask, close, open, send, setting, tokens, with_server } from "./browser.mjs";

const served = with_server();
// Longer than a page of the KV cache.
const question = "Tell me a story about a bird who could not sing. ".repeat(6).trim();
const seeded = { seed: 77, temperature: 0.8, max_tokens: 32 };

async function set_all(page) {
  await setting(page, "Seed", seeded.seed);
  await setting(page, "Temperature, number", seeded.temperature);
  await setting(page, "Longest answer", seeded.max_tokens);
}
const shown = (text) => text.replaceAll(" ", "·").replaceAll("\n", "⏎");
const lane = (page) => page.getByRole("listbox", { name: "Tokens of the fork" }).locator("[role=option]");
const of_answer = (page) => page.getByRole("listbox", { name: "Tokens of the answer" }).locator("[role=option]");
const kept = (server, label) => server.json(`/api/requests/${label}/tokens`);

served("another token: the answer goes on from there, beside its parent", async (server) => {
  const page = await open(server);
  await set_all(page);
  const label = await ask(page, question);
  const before = await of_answer(page).allTextContents();
  const at = 6;
  await of_answer(page).nth(at).click();
  const card = page.getByRole("figure", { name: "Alternatives" });
  const other = card.getByRole("button", { name: /./ }).and(card.locator(".bars button")).first();
  const text = await other.textContent();
  await other.click();
  const section = page.getByRole("region", { name: "A fork" });
  await section.getByText(/^Ended:/).waitFor();
  const forked = await lane(page).allTextContents();
  assert.deepEqual(forked.slice(0, at), before.slice(0, at));
  assert.equal(forked[at], text);
  assert.notEqual(text, before[at]);

  // The same by the API: token and seed give the same continuation.
  const parent = await kept(server, label);
  const link = await section.getByRole("link", { name: "beside its parent" }).getAttribute("href");
  const child_label = link.match(/request\/([^?]+)/)[1];
  const child = await kept(server, child_label);
  const answer = await server.json(`/api/requests/${label}/fork`,
    { position: parent.prompt_tokens + at, token: child.tokens[child.prompt_tokens + at].id, stream: false });
  assert.equal(forked.slice(at + 1).join(""), shown(answer.choices[0].message.content));
  // Linked both ways, in the server and on the page; pages came from the cache.
  assert.equal(child.parent, parent.id);
  assert.ok(parent.forks.includes(child.id));
  assert.equal(child.begun, at + 1);
  const [account] = await server.ended_of(child_label);
  assert.ok(account.cached_tokens > 0, "nothing came from the cache");
  assert.ok(link.includes(`vs=${label}`));
  // A fork of the fork, and a reload finds all three.
  await lane(page).nth(at + 3).click();
  await card.locator(".bars button").first().click();
  await page.getByRole("region", { name: "A fork" }).nth(1).getByText(/^Ended:/).waitFor();
  await page.reload();
  await of_answer(page).first().waitFor();
  assert.equal(await page.getByRole("region", { name: "A fork" }).count(), 2);
  assert.deepEqual((await lane(page).allTextContents()).slice(0, forked.length), forked);
  await page.getByRole("button", { name: "Close this fork" }).first().click();
  assert.equal(await page.getByRole("region", { name: "A fork" }).count(), 1);
  await close(page);
});

served("token by token, by keyboard", async (server) => {
  const page = await open(server);
  await set_all(page);
  const whole = await server.json("/v1/chat/completions",
    { messages: [{ role: "user", content: question }], ...seeded });
  await page.getByLabel("Token by token").check();
  await page.getByLabel("Your message").fill(question);
  await page.keyboard.press("Control+Enter");
  await page.getByText("paused", { exact: true }).waitFor();
  for (let n = 1; n <= 3; ++n) {
    await of_answer(page).nth(n - 1).waitFor();
    const label = new URL(page.url().replace("#/", "")).searchParams.get("req");
    // It has drawn as many as it was allowed: asking for none changes nothing.
    for (let tries = 0; ; ++tries) {
      const { state, output } = await server.json(`/api/requests/${label}/hold`, { allow: 0 });
      if (state === "held" && output === n) break;
      assert.ok(tries < 200, `${state} after ${output} tokens`);
      await new Promise((done) => setTimeout(done, 10));
    }
    assert.equal(await of_answer(page).count(), n);
    if (n < 3) await page.keyboard.press(".");
  }
  await page.getByRole("button", { name: "One token" }).click();
  await of_answer(page).nth(3).waitFor();
  await page.getByLabel("Your message").focus();
  await page.keyboard.press(" ");
  await page.getByText(/^Ended:/).waitFor();
  assert.equal((await of_answer(page).allTextContents()).join(""), shown(whole.choices[0].message.content));
  await server.expect_idle(5000);
  await close(page);
});

served("a running answer is paused and goes on; stop ends a paused one", async (server) => {
  const page = await open(server);
  await setting(page, "Seed", 5);
  await page.getByLabel("Your message").fill("Tell me a very long story.");
  // At the first tokens, within the page: the answer is there in a blink.
  await page.evaluate(() => new MutationObserver((_, observer) => {
    if (document.querySelectorAll("[role=listbox] [role=option]").length < 2) return;
    observer.disconnect();
    document.getElementById("prompt").dispatchEvent(new KeyboardEvent("keydown", { key: " ", bubbles: true }));
  }).observe(document.body, { childList: true, subtree: true }));
  await page.keyboard.press("Control+Enter");
  await page.getByRole("button", { name: "Go on" }).waitFor();
  const { running } = await server.json("/api/snapshot");
  assert.equal(running.length, 1, "it is still there");
  await page.getByRole("button", { name: "Stop" }).click();
  await page.getByText("Ended: you stopped it.").waitFor();
  await server.expect_idle(5000);
  await send(page).waitFor();
  assert.ok(await tokens(page).count() >= 2);
  await close(page);
});
