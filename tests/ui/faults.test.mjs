// A server that goes, comes back, or asks for a key.
import assert from "node:assert/strict";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { ask, close, open, send, Server, slow } from "./browser.mjs";

test("a server that goes is noticed, and one that comes back", async () => {
  const first = await Server.spawn([]);
  const page = await open(first, { path: "/#/engine" });
  await page.getByText("live", { exact: true }).waitFor();
  const port = new URL(first.url).port;
  await first.stop();
  await page.getByText("The server does not answer.").waitFor();
  const second = await Server.spawn(["--port", port]);
  await page.getByText("The server was restarted.").waitFor({ timeout: 30000 * slow });
  await page.getByText("live", { exact: true }).waitFor();
  page.problems = page.problems.filter((p) => !/ERR_|Failed to load/.test(p)); // the browser logs them
  await close(page);
  await second.stop();
});

test("with keys the page asks for one, and shows its own requests only", async () => {
  const file = join(mkdtempSync(join(tmpdir(), "vitrine-")), "keys");
  writeFileSync(file, "secret-one-000000 one\nsecret-two-000000 two\nsecret-all-000000 boss role=operator\n");
  const server = await Server.spawn(["--api-keys", file]);
  const with_key = async (key) => {
    const page = await open(server);
    await page.getByLabel("This server asks for an API key.").fill(key);
    await page.getByRole("button", { name: "Use it" }).click();
    return page;
  };
  const well = (page) => (page.problems = page.problems.filter((p) => !/401|404/.test(p)), close(page));
  const wrong = await with_key("nothing");
  await wrong.waitForTimeout(500);
  assert.ok(await wrong.getByLabel("This server asks for an API key.").isVisible());
  assert.ok(await send(wrong).isDisabled());
  await well(wrong);

  const one = await with_key("secret-one-000000");
  const label = await ask(one, "Tell me a story about a fox.");
  await one.goto(`${server.url}/#/request`);
  await one.getByRole("link", { name: label }).waitFor();
  await one.goto(`${server.url}/#/engine`);
  await one.getByText("this key may not see them").waitFor();
  await well(one);

  const two = await with_key("secret-two-000000");
  await two.getByText("live", { exact: true }).waitFor();
  await two.goto(`${server.url}/#/request`);
  await two.getByText("No request yet.").waitFor();
  await two.goto(`${server.url}/#/request/${label}`);
  await two.getByText("found no request").waitFor();
  await well(two);

  const boss = await with_key("secret-all-000000");
  await boss.getByText("live", { exact: true }).waitFor();
  await boss.goto(`${server.url}/#/request`);
  await boss.getByRole("link", { name: label }).waitFor();
  await boss.goto(`${server.url}/#/engine`);
  await boss.getByRole("figure", { name: "Pages of the KV cache" }).waitFor();
  await well(boss);
  await server.stop();
});
