// A server that goes, and one that comes back.
import assert from "node:assert/strict";
import http from "node:http";
import { test } from "node:test";
import { at_moment, close, figure_json, open, Server, slow, streams } from "./browser.mjs";

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
  // The stream is the new process's, from its beginning.
  await page.getByText(/^Now, /).waitFor({ timeout: 30000 * slow });
  await second.json("/v1/completions", { prompt: "Once", max_tokens: 12, ignore_eos: true });
  await page.getByText("The last 12 steps took").waitFor();
  page.problems = page.problems.filter((p) => !/ERR_|Failed to load/.test(p)); // the browser logs them
  await close(page);
  await second.stop();
});

// Between the page and a server: what goes through can be cut.
async function proxy(to) {
  let cut = false;
  const open_ones = new Set();
  const server = http.createServer((request, response) => {
    const stream = request.url.startsWith("/api/trace");
    if (cut && stream) return void request.socket.destroy();
    const onward = http.request(to + request.url, { method: request.method, headers: request.headers }, (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    });
    onward.on("error", () => response.destroy());
    response.on("close", () => (onward.destroy(), open_ones.delete(response)));
    if (stream) open_ones.add(response);
    request.pipe(onward);
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    cut: (on) => ((cut = on), on && open_ones.forEach((response) => response.destroy())),
    close: () => (server.closeAllConnections(), server.close()),
  };
}

test("a stream that was cut goes on; what is lost is counted", async (t) => {
  const plain = await Server.spawn([]);
  const there = await streams(plain, t);
  await plain.stop();
  if (!there) return;
  const server = await Server.spawn(["--trace-mib", "1"]);
  const between = await proxy(server.url);
  const page = await open(between, { path: "/#/engine", height: 2400 });
  await page.getByText("Now, as it happens.").waitFor();
  const run = (n, tokens) => server.json("/v1/completions", { prompt: "Once", n, max_tokens: tokens, ignore_eos: true, seed: 1 });
  const lost = async () => (await figure_json(page, "Batch")).length && page.evaluate(() => document.querySelector(".batch [data-field='step.lost']")?.textContent ?? "");
  await run(1, 20);
  await page.getByText("No sequence runs.").waitFor();
  // A short cut: what happened meanwhile is still kept by the server, and nothing is lost.
  between.cut(true);
  await page.getByText("The stream is interrupted").waitFor();
  await run(1, 20);
  between.cut(false);
  await page.getByText("Now, as it happens.").waitFor({ timeout: 30000 * slow });
  const { seq } = await server.json("/api/snapshot?full=1");
  await at_moment(page, seq);
  assert.equal(await lost(), "");
  await page.evaluate(() => (location.hash = "#/engine"));
  await page.getByRole("button", { name: "Go on" }).click();
  const before = (await figure_json(page, "Batch")).at(-1).n;
  // A long one: more than the server keeps.
  between.cut(true);
  await page.getByText("The stream is interrupted").waitFor();
  for (let i = 0; i < 8; ++i) await run(8, 400);
  between.cut(false);
  await page.getByText("Now, as it happens.").waitFor({ timeout: 30000 * slow });
  await run(1, 20);
  await page.getByText("No sequence runs.").waitFor();
  await page.locator(".batch [data-field='step.lost']").first().waitFor();
  const steps = await figure_json(page, "Batch");
  const after = steps.findIndex((s, i) => i > 0 && s.n !== steps[i - 1].n + 1);
  const missing = after > 0 ? steps[after].n - steps[after - 1].n - 1 : steps[0].n - before - 1;
  assert.equal(Number((await lost()).replace(/[^0-9]/g, "")), missing);
  page.problems = page.problems.filter((p) => !/ERR_|Failed to load/.test(p)); // the browser logs them
  await close(page);
  between.close();
  await server.stop();
});
