// For everybody: axe in both themes on a narrow and a wide screen, keyboard, motion.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { ask, close, open, themes, tokens, views, visit, with_server } from "./browser.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const served = with_server();

async function violations(page) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
  return violations.map((v) => `${v.id}: ${v.help}: ${v.nodes.map((n) => n.html.slice(0, 160)).join(" | ")}`);
}

for (const theme of themes)
  for (const width of [320, 1280])
    served(`axe finds nothing: ${theme}, ${width} px`, async (server) => {
      const page = await open(server, { theme, width });
      await page.getByText("Ask. Then see what happened.").waitFor();
      assert.deepEqual(await violations(page), [], "empty");
      const label = await ask(page, "Tell me a story about a fox.");
      await tokens(page).nth(2).click();
      for (const view of [...views, `#/request/${label}`, `#/request/${label}?vs=${label}&part=3`]) {
        await visit(page, view, label);
        assert.deepEqual(await violations(page), [], view);
      }
      await page.keyboard.press("?");
      await page.getByRole("dialog").waitFor();
      assert.deepEqual(await violations(page), [], "keys");
      await page.keyboard.press("Escape");
      await page.keyboard.press("Control+k");
      await page.getByRole("combobox", { name: "Command" }).fill(label);
      await page.getByRole("option", { name: label }).waitFor();
      assert.deepEqual(await violations(page), [], "commands");
      await close(page);
    });

served("everything is reached by keyboard, and the focus is seen", async (server) => {
  const page = await open(server);
  await page.getByText("live", { exact: true }).waitFor();
  await page.evaluate(() => document.activeElement?.blur());
  const seen = [];
  for (let i = 0; i < 40; ++i) {
    await page.keyboard.press("Tab");
    const at = await page.evaluate(() => {
      const element = document.activeElement, style = getComputedStyle(element);
      return element === document.body ? null
        : { name: element.textContent.trim() || element.getAttribute("aria-label") || element.id, outline: style.outlineStyle };
    });
    if (!at) continue; // round the page's end
    assert.notEqual(at.outline, "none", at.name);
    seen.push(at.name);
  }
  for (const name of ["To the content", "Ask", "Requests", "Engine", "Model", "Send", "prompt"])
    assert.ok(seen.some((s) => s.includes(name)), `${name} in ${seen}`);
  await page.evaluate(() => document.activeElement?.blur());
  for (const [key, view] of [["e", "Engine"], ["m", "demo"], ["r", "Requests"], ["a", "Ask the model"]]) {
    await page.keyboard.press("g");
    await page.keyboard.press(key);
    await page.getByRole("heading", { level: 1, name: view }).waitFor({ state: "attached" });
  }
  await close(page);
});

served("everything has a name", async (server) => {
  const page = await open(server);
  const label = await ask(page, "Say something.");
  const named = async (name) => {
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox", { name: "Command" }).fill(name);
  };
  await named("eng");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "Engine" }).waitFor();
  await named(label.slice(0, 9));
  await page.getByRole("option", { name: label }).click();
  await page.getByRole("heading", { level: 1, name: label }).waitFor();
  await named("colours");
  for (const key of ["ArrowDown", "Enter"]) await page.keyboard.press(key);
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark");
  await named("no such thing");
  await page.getByText("Nothing has this name.").waitFor();
  await page.keyboard.press("Escape");
  await close(page);
});

served("without motion where none is wanted", async (server) => {
  const page = await open(server, { reducedMotion: "reduce" });
  await ask(page);
  const moving = await page.evaluate(() => document.getAnimations().length);
  assert.equal(moving, 0);
  await close(page);
});

served("the theme can be chosen and stays", async (server) => {
  const page = await open(server, { theme: "light" });
  const background = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
  const light = await background();
  const button = page.getByRole("button", { name: /^Colours/ });
  await button.click();
  await button.click();
  assert.notEqual(await background(), light);
  await page.reload();
  assert.notEqual(await background(), light);
  await close(page);
});
