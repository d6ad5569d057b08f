// With API keys: a wrong one gets the form, a plain one sees its own requests, an operator's the engine.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { ask, figure_json, open, send, Server, slow, views, visit } from "./browser.mjs";

let server;
after(() => server?.stop());
const keyed = (name, run) => test(name, async () => {
  if (!server) {
    const file = join(mkdtempSync(join(tmpdir(), "vitrine-")), "keys");
    writeFileSync(file, "secret-one-000000 one\nsecret-two-000000 two\nsecret-all-000000 boss role=operator\n");
    server = await Server.spawn(["--api-keys", file]);
  }
  await run();
});

const form = (page) => page.getByLabel("This server asks for an API key.");
async function with_key(key, more) {
  const page = await open(server, more);
  await form(page).fill(key);
  await page.getByRole("button", { name: "Use it" }).click();
  return page;
}
// The browser itself reports every answer that refuses something.
async function well(page) {
  const problems = page.problems.filter((p) => !/status of (401|403|404)/.test(p));
  await page.context().close();
  assert.deepEqual(problems, []);
}
const told = (page) => page.locator("body").innerText();

keyed("a wrong key gets the form again, and nothing else", async () => {
  for (const key of ["nothing", "secret-one-00000", "secret-one-0000000"]) {
    const page = await with_key(key);
    await page.waitForTimeout(500);
    assert.ok(await form(page).isVisible(), key);
    assert.ok(await send(page).isDisabled(), key);
    for (const view of ["#/engine", "#/request", "#/model", "#/lab/sampling", "#/journey/13"]) {
      await page.evaluate((to) => (location.hash = to), view);
      await form(page).waitFor();
    }
    await well(page);
  }
});

let label;
const secret = "Tell me a story about a fox and a lantern.";
keyed("a plain key sees its own requests, in every view", async () => {
  const page = await with_key("secret-one-000000");
  label = await ask(page, secret);
  for (const view of views) {
    await visit(page, view, label).catch((error) => assert.fail(`${view}: ${error.message}\n${page.problems.join("\n")}`));
    assert.ok(!(await form(page).isVisible()), view);
  }
  await page.evaluate(() => (location.hash = "#/request"));
  await page.getByRole("link", { name: label }).click();
  await page.getByRole("figure", { name: "Life" }).waitFor();
  assert.equal(await page.getByRole("figure", { name: "Cost" }).count(), 0, "its share of steps tells about others");
  await page.evaluate(() => (location.hash = "#/engine"));
  await page.getByText("Pages concern all keys").waitFor();
  await page.getByText("Steps concern all keys").waitFor();
  assert.deepEqual(JSON.stringify((await figure_json(page, "Rates")).rates), "[]", "what is not known is no zero");
  await page.evaluate((to) => (location.hash = `#/journey/13?req=${to}&beat=1`), label);
  const work = page.getByRole("figure", { name: "Work by kind" });
  await work.getByText("is for operators").waitFor();
  await well(page);
});

keyed("another plain key sees nothing of it", async () => {
  const page = await with_key("secret-two-000000");
  await page.getByText("live", { exact: true }).waitFor();
  await page.evaluate(() => (location.hash = "#/request"));
  await page.getByText("No request yet.").waitFor();
  for (const view of [`#/request/${label}`, `#/ask?req=${label}`, `#/lab/sampling?req=${label}&pos=3`, `#/journey/1?req=${label}`, `#/journey/13?req=${label}`, "#/engine", "#/engine?seq=3"]) {
    await page.evaluate((to) => (location.hash = to), view);
    await page.waitForTimeout(700 * slow);
    const text = await told(page);
    assert.ok(!text.includes("lantern"), `${view}: ${text}`);
    assert.ok(!(await form(page).isVisible()), view);
  }
  await page.evaluate((to) => (location.hash = `#/request/${to}`), label);
  await page.getByText("found no request").waitFor();
  await well(page);
});

keyed("an operator sees the engine, and the requests of all", async () => {
  const page = await with_key("secret-all-000000", { height: 2400 });
  await page.getByText("live", { exact: true }).waitFor();
  await page.evaluate(() => (location.hash = "#/request"));
  await page.getByRole("link", { name: label }).click();
  await page.getByRole("figure", { name: "Cost" }).waitFor();
  await page.evaluate(() => (location.hash = "#/engine"));
  await page.getByRole("figure", { name: "Pages of the KV cache" }).waitFor();
  // A link cannot send the key; the figure can, and saves the answer.
  const saving = page.waitForEvent("download");
  await page.getByRole("link", { name: "API of Queue" }).click();
  const saved = await saving;
  assert.equal(saved.suggestedFilename(), "api-snapshot.json");
  assert.ok(JSON.parse(readFileSync(await saved.path(), "utf8")).pools.length > 0);
  await page.getByRole("figure", { name: "Prefix tree" }).getByText("lantern").first().waitFor();
  // The roof is measured when somebody asks, and then the request's rates are shares of it.
  const roof = page.getByRole("figure", { name: "Roofline" });
  await roof.getByRole("button", { name: "Measure the machine’s peaks" }).click();
  await roof.getByText("Peaks:").waitFor({ timeout: 60000 * slow });
  const { gflop_s, read_gb_s } = (await (await fetch(`${server.url}/api/info`, { headers: { authorization: "Bearer secret-all-000000" } })).json()).peaks;
  assert.ok(gflop_s > 0 && read_gb_s > 0);
  await page.evaluate((to) => (location.hash = `#/request/${to}`), label);
  await page.getByText("Its decode reached").waitFor();
  await well(page);
});
