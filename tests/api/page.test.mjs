// The page, as the real server serves it.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { Server, vitrine } from "./server.mjs";

const folder = mkdtempSync(join(tmpdir(), "page-"));
after(() => rmSync(folder, { recursive: true }));

// As it comes: fetch() would decode the body.
function get(url, headers = {}, method = "GET") {
  return new Promise((done, failed) => {
    const sent = request(url, { method, headers }, (answer) => {
      const parts = [];
      answer.on("data", (bytes) => parts.push(bytes));
      answer.on("end", () => done({
        status: answer.statusCode, headers: answer.headers, body: Buffer.concat(parts).toString() }));
    });
    sent.on("error", failed);
    sent.end();
  });
}

test("the page and all that it refers to come without a key", async () => {
  const keys = join(folder, "keys");
  writeFileSync(keys, "sk-a ann\n");
  const server = await Server.start("--api-keys", keys);
  const page = await get(server.url + "/");
  assert.equal(page.status, 200);
  assert.match(page.headers["content-type"], /^text\/html/);
  assert.match(page.headers["content-security-policy"], /^default-src 'none'; script-src 'self';/);
  const files = [...page.body.matchAll(/(?:src|href)="(\/[^"]*)"/g)].map((found) => found[1]);
  assert.ok(files.length >= 2, page.body);
  for (const file of files) {
    const first = await get(server.url + file, { "accept-encoding": "br, gzip" });
    assert.equal(first.status, 200, file);
    const again = await get(server.url + file,
      { "accept-encoding": "br, gzip", "if-none-match": first.headers.etag });
    assert.equal(again.status, 304, file);
    assert.equal(again.body, "");
    const head = await get(server.url + file, {}, "HEAD");
    assert.equal(head.status, 200, file);
    assert.equal(head.body, "");
    assert.equal((await fetch(server.url + file)).status, 200, file);
  }
  assert.equal((await get(server.url + "/api/info")).status, 401);
  await server.stop();
});

test("--no-ui", async () => {
  const server = await Server.start("--no-ui");
  for (const path of ["/", "/ui/icon.svg"]) {
    const answer = await get(server.url + path);
    assert.equal(answer.status, 404);
    assert.match(JSON.parse(answer.body).error.message, /switched off \(--no-ui\)/);
  }
  await server.stop();
});

test("--ui-dir, read before the sandbox is entered", async () => {
  const dist = join(folder, "dist");
  mkdirSync(join(dist, "assets"), { recursive: true });
  writeFileSync(join(dist, "index.html"), "<p>mine</p>");
  writeFileSync(join(dist, "assets", "a-1.js"), "raw");
  writeFileSync(join(dist, "assets", "a-1.js.gz"), "gz");
  const server = await Server.start("--ui-dir", dist);
  rmSync(dist, { recursive: true });
  assert.equal((await get(server.url + "/")).body, "<p>mine</p>");
  const script = await get(server.url + "/ui/assets/a-1.js", { "accept-encoding": "gzip" });
  assert.equal(script.body, "gz");
  assert.equal(script.headers["content-encoding"], "gzip");
  assert.equal(script.headers["cache-control"], "public, max-age=31536000, immutable");
  assert.equal((await get(server.url + "/ui/icon.svg")).status, 404);
  await server.stop();
});

test("a folder that is no page is refused by name", async () => {
  mkdirSync(join(folder, "empty"));
  for (const [flags, says] of [
    [["--ui-dir", join(folder, "empty")], /empty: found no index\.html/],
    [["--ui-dir", join(folder, "none")], /none: cannot be read as a folder: No such file/]]) {
    const ended = await vitrine("serve", "--port", "0", ...flags);
    assert.equal(ended.code, 1);
    assert.match(ended.err, says);
  }
  assert.equal((await vitrine("serve", "--no-ui", "--ui-dir", folder)).code, 2);
});

test("a person sees the page's address first", async () => {
  for (const [host, shown] of [["127.0.0.1", "127.0.0.1"], ["0.0.0.0", "127.0.0.1"], ["localhost", "localhost"]]) {
    const server = await Server.start("--host", host);
    const port = server.url.match(/:(\d+)$/)[1];
    assert.ok(server.out.startsWith(`open http://${shown}:${port} in a browser\n`), server.out);
    await server.stop();
  }
  const server = await Server.start("--no-ui");
  assert.ok(server.out.startsWith("vitrine is ready: "), server.out);
  await server.stop();
});
