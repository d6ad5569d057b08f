// For everybody: axe in both themes on a narrow and a wide screen, keyboard, motion.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ask, close, figure_json, open, Server, slow, themes, tokens, views, visit, with_server } from "./browser.mjs";
import { recording } from "./recording.mjs";

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
      await page.keyboard.press("Escape");
      // Two answers, one of them a fork.
      await page.evaluate((to) => (location.hash = `#/ask?req=${to}`), label);
      await tokens(page).nth(4).click();
      await page.getByRole("figure", { name: "Alternatives" }).locator(".bars button").first().click();
      await page.getByRole("region", { name: "A fork" }).getByText(/^Ended:/).waitFor();
      assert.deepEqual(await violations(page), [], "fork");
      // The engine under load, with a page chosen and what its numbers mean.
      await page.evaluate(() => (location.hash = "#/engine?page=0:0"));
      const load = await server.post("/api/lab/company", { n: 12, max_tokens: 256 });
      assert.equal(load.status, 200, await load.text());
      await page.getByRole("figure", { name: "Running" }).locator("tbody tr").nth(3).waitFor();
      assert.deepEqual(await violations(page), [], "under load");
      const chip = page.getByRole("button", { name: /the numbers of Rates/ });
      await chip.focus();
      await page.keyboard.press("Enter");
      const panel = page.getByRole("dialog", { name: "What the numbers mean" });
      await panel.getByText("Tokens drawn in the last interval, by its length.").waitFor();
      assert.deepEqual(await violations(page), [], "numbers");
      await page.keyboard.press("Escape");
      await panel.waitFor({ state: "detached" });
      assert.equal(await page.evaluate(() => document.activeElement.getAttribute("aria-label")?.includes("the numbers of Rates")), true);
      await page.locator(".rates .now .num").first().click();
      await panel.getByText("Prompt tokens computed in the last interval").waitFor();
      assert.equal(await panel.locator("dt").count(), 1);
      await close(page);
    });

served("axe finds nothing where a key is asked for, and where nothing answers any more", async () => {
  const file = join(mkdtempSync(join(tmpdir(), "vitrine-")), "keys");
  writeFileSync(file, "secret-all-000000 boss role=operator\n");
  const server = await Server.spawn(["--api-keys", file]);
  for (const theme of themes) {
    const page = await open(server, { theme, path: "/#/engine" });
    await page.getByLabel("This server asks for an API key.").waitFor();
    assert.deepEqual(await violations(page), [], "locked");
    if (theme === themes[1]) {
      await page.getByLabel("This server asks for an API key.").fill("secret-all-000000");
      await page.getByRole("button", { name: "Use it" }).click();
      await page.getByRole("figure", { name: "Queue" }).waitFor();
      await server.stop();
      await page.locator("[data-field='page.age']").first().waitFor();
      assert.deepEqual(await violations(page), [], "stale");
    }
    await page.context().close();
    assert.deepEqual(page.problems.filter((p) => !/status of 401|ERR_|Failed to load/.test(p)), []); // the browser logs them
  }
});

// A recording in the engine's view: the same for every test that looks at its figures.
async function recorded(server, more) {
  const page = await open(server, { path: "/#/engine", height: 2400, ...more });
  await page.getByText(/^Now, /).waitFor();
  const file = join(mkdtempSync(join(tmpdir(), "vitrine-")), "made.vtr");
  writeFileSync(file, recording({ sequences: 8, steps: 300 }).lines.join("\n"));
  await page.getByLabel("Recording").setInputFiles(file);
  await page.getByText("From a recording.").waitFor();
  return page;
}

served("drawings have a cursor, for keys and ears", async (server) => {
  const page = await recorded(server);
  const cursor = (name) => page.getByRole("slider", { name });
  const steps = await figure_json(page, "Batch"), newest = steps.at(-1);
  for (const [name, words, after] of [
    ["Step, in its parts", `step ${newest.n}: `, `step ${newest.n - 2}: `],
    ["Step under the roof", `step ${newest.n}, decode: `, `step ${newest.n - 2}, decode: `],
    ["A half second of the rates", "0 ms before the newest: prefill", "1.00 s before the newest: prefill"],
  ]) {
    const at = cursor(name);
    await at.scrollIntoViewIfNeeded();
    assert.equal(await at.getAttribute("aria-valuetext"), "none chosen", name);
    await at.focus();
    const said = (text) => page.waitForFunction(([name, text]) => document.querySelector(`[role=slider][aria-label="${name}"]`).getAttribute("aria-valuetext").startsWith(text), [name, text]);
    await at.press("ArrowLeft");
    await said(words);
    for (let i = 0; i < 2; ++i) await at.press("ArrowLeft");
    await said(after);
    // However fast it is moved: at most four times a second.
    const times = await at.evaluate((element) => new Promise((done) => {
      const seen = [];
      new MutationObserver(() => seen.push(performance.now())).observe(element, { attributeFilter: ["aria-valuetext"] });
      let pressed = 0; // to and fro
      const timer = setInterval(() => element.dispatchEvent(new KeyboardEvent("keydown", { key: ++pressed % 6 < 3 ? "ArrowLeft" : "ArrowRight", bubbles: true })), 30);
      setTimeout(() => (clearInterval(timer), done(seen)), 1500);
    }));
    assert.ok(times.length > 2 && times.slice(1).every((t, i) => t - times[i] > 200), `${name}: ${times.map(Math.round)}`);
    await at.press("Escape");
    await said("none chosen");
  }
  const curve = await figure_json(page, "Throughput"), at = cursor("Sequences at once");
  await at.focus();
  await at.press("End");
  await page.locator(`[role=slider][aria-label="Sequences at once"][aria-valuetext^="${curve.at(-1).sequences} at once: "]`).waitFor();
  await close(page);
});

served("keys of a single character can be turned off", async (server) => {
  const page = await open(server, { path: "/#/journey/9" });
  await page.getByText("live", { exact: true }).waitFor();
  const beat = () => page.evaluate(() => new URLSearchParams(location.hash.split("?")[1]).get("beat"));
  await page.locator(".beats").waitFor();
  await page.keyboard.press("]");
  await page.waitForFunction(() => location.hash.includes("beat=2"));
  await page.getByRole("button", { name: "Keys" }).click();
  const choice = page.getByRole("checkbox", { name: "Keys that are a single character" });
  await choice.uncheck();
  await page.keyboard.press("Escape");
  for (const again of [false, true]) {
    if (again) await page.reload();
    await page.locator(".beats").waitFor();
    for (const key of ["]", "g", "e", "?"]) await page.keyboard.press(key);
    await page.waitForTimeout(400);
    assert.equal(await beat(), "2");
    assert.equal(await page.getByRole("dialog").count(), 0);
  }
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Command" }).fill("keys");
  await page.keyboard.press("Enter");
  await choice.check();
  await page.keyboard.press("Escape");
  await page.keyboard.press("[");
  await page.waitForFunction(() => location.hash.includes("beat=1"));
  await close(page);
});

served("data can be copied without the browser’s clipboard, or by hand", async (server) => {
  const page = await open(server, { path: "/#/model" });
  const figure = page.getByRole("figure", { name: "Limits" });
  await figure.waitFor();
  await page.evaluate(() => Object.defineProperty(navigator, "clipboard", { value: undefined }));
  const { limits } = await server.json("/api/info");
  await figure.getByRole("button", { name: "JSON of Limits" }).click();
  await figure.getByRole("button", { name: "Copied of Limits" }).waitFor();
  await page.getByLabel("Text to split").fill("");
  await page.getByLabel("Text to split").focus();
  await page.keyboard.press("Control+v");
  assert.deepEqual(JSON.parse(await page.getByLabel("Text to split").inputValue()), limits);
  await page.evaluate(() => (document.execCommand = () => false));
  await figure.getByRole("button", { name: "JSON of Limits" }).click();
  await figure.getByText("does not let the page copy").waitFor();
  assert.deepEqual(JSON.parse(await figure.getByRole("textbox", { name: "JSON of Limits" }).inputValue()), limits);
  await figure.getByRole("button", { name: "Close" }).click();
  await figure.getByRole("textbox").waitFor({ state: "detached" });
  await close(page);
});

served("where the system sets the colours, marks are still seen", async (server) => {
  const page = await recorded(server, { forcedColors: "active" });
  await page.locator("canvas.cells[data-full]").waitFor();
  await page.locator(".fourth .bar span").nth(2).waitFor();
  const seen = await page.evaluate(() => {
    const back = getComputedStyle(document.body).backgroundColor, colours = (selector) => [...document.querySelectorAll(selector)].map((e) => getComputedStyle(e).backgroundColor);
    const canvas = document.querySelector("canvas.cells"), { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height), kinds = new Set();
    for (let i = 0; i < data.length; i += 4) if (data[i + 3] === 255) kinds.add(`${data[i]},${data[i + 1]},${data[i + 2]}`);
    return { back, keys: colours(".key.prefill"), parts: new Set(colours(".fourth .bar span")).size, cells: kinds.size, ink: getComputedStyle(document.querySelector("h1")).color };
  });
  assert.ok(seen.keys.length > 1 && seen.keys.every((c) => c !== seen.back && c !== seen.ink && !/, 0\)$/.test(c)), JSON.stringify(seen));
  assert.ok(seen.parts >= 3 && seen.cells >= 2, JSON.stringify(seen));
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
