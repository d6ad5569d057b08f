// The first minute of somebody who reads nothing.
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { ask, close, open, send, Server, slow, tokens, views, with_server } from "./browser.mjs";
import { test } from "node:test";

const served = with_server();

served("one field, one button, an example: a click answers", async (server) => {
  const page = await open(server);
  const began = Date.now();
  await send(page).click();
  await tokens(page).first().waitFor();
  console.log(`first token on the page ${Date.now() - began} ms after the page was there`);
  await page.getByText(/^Ended:/).waitFor({ timeout: 120000 * slow });
  await close(page);
});

served("every view says what to do before the first request", async (fresh) => {
  const server = await Server.spawn([]);
  try {
    for (const view of views) {
      const page = await open(server, { path: `/${view}` });
      await page.getByText("live", { exact: true }).waitFor();
      const words = {
        "#/ask": "Ask. Then see what happened.", "#/request": "No request yet.", "#/engine": "No sequence runs.",
        "#/model": "The model reads numbers", "#/lab": "Benches to take one thing apart",
        "#/lab/sampling": "The bench is about a request.", "#/journey": "One request, from the key press",
      };
      if (words[view]) await page.getByText(words[view]).waitFor();
      await page.locator("h1").waitFor({ state: "attached" });
      assert.equal(await page.locator("h1").count(), 1, view);
      await close(page);
    }
  } finally {
    await server.stop();
  }
  assert.ok(fresh);
});

served("the page is small, hashed, compressed and under a strict policy", async (server) => {
  const page = await open(server);
  await page.getByText("live", { exact: true }).waitFor();
  const loaded = await page.evaluate(() =>
    performance.getEntriesByType("resource").filter((r) => r.name.includes("/ui/")).map((r) => [r.name, r.encodedBodySize]));
  const bytes = loaded.reduce((sum, [, size]) => sum + size, 0);
  const paint = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime);
  console.log(`first view: ${loaded.length} files, ${bytes} bytes; first paint after ${paint} ms`);
  assert.ok(bytes > 1000 && bytes < 60 << 10, `${bytes}`);
  for (const [name] of loaded) {
    const answer = await fetch(name, { headers: { "accept-encoding": "gzip" } });
    assert.match(answer.headers.get("cache-control"), /immutable/, name);
    assert.match(answer.headers.get("content-security-policy"), /default-src 'none'/);
  }
  await close(page);
});

test("the plain page asks and answers too", async () => {
  const server = await Server.spawn(["--ui-dir", fileURLToPath(new URL("plain", import.meta.url))]);
  try {
    const page = await open(server, { width: 320 });
    await page.getByRole("button", { name: "Send" }).click();
    await page.waitForFunction(() => document.body.innerText.length > 400, null, { timeout: 60000 * slow });
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
    await close(page);
  } finally {
    await server.stop();
  }
});

served("an answer on a thirtieth of the screen", async (server) => {
  const page = await open(server, { width: 320, height: 568 });
  await ask(page, "What is a token?");
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
  await close(page);
});
