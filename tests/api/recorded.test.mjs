// Recorded requests over HTTP: their tokens, stages, scans, forks, and one that is held.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Server, messages } from "./server.mjs";

let server;
before(async () => { server = await Server.start(); });
after(() => server.stop());

const ask = (id, more = {}) => server.post("/v1/chat/completions",
  { messages, temperature: 1, max_tokens: 12, ignore_eos: true, vitrine: { record: true }, ...more },
  { "x-request-id": id });
const look = (id) => server.json(`/api/requests/${id}/tokens`);
const ids = async (id) => (await look(id)).tokens.map((token) => token.id);

test("every token of the answer is drawn again", async () => {
  await (await ask("one")).json();
  const kept = await look("one");
  assert.equal(kept.tokens.length, kept.prompt_tokens + 12);
  for (let position = kept.prompt_tokens; position < kept.tokens.length; ++position) {
    const told = await server.json("/api/requests/one/stages", { position });
    assert.equal(told.drawn.id, kept.tokens[position].id);
    assert.ok(told.same_token && told.exact);
    for (const stage of told.stages) {
      const sum = stage.top.reduce((all, [, , , p]) => all + p, stage.rest.p);
      assert.ok(Math.abs(sum - 1) < 1e-9, `${stage.name}: ${sum}`);
    }
  }
  assert.equal((await server.json("/api/requests/one/scan", {})).first_difference, null);
});

test("a fork goes on as its parent did, with its own id", async () => {
  await (await ask("two")).json();
  const kept = await look("two");
  const answer = await server.post("/api/requests/two/fork", { position: kept.prompt_tokens + 5 },
    { "x-request-id": "fork" });
  const text = await answer.text();
  assert.equal(answer.headers.get("content-type").split(";")[0], "text/event-stream");
  const first = JSON.parse(text.slice("data: ".length, text.indexOf("\n\n")));
  assert.equal(first.id, "chatcmpl-fork");
  assert.equal(first.parent, "two");
  assert.ok(text.endsWith("data: [DONE]\n\n"));
  assert.deepEqual(await ids("fork"), await ids("two"));
});

test("one token at a time", async () => {
  const answer = ask("held", { stream: true, vitrine: { record: true, allow: 1 } });
  const reader = (await answer).body.getReader();
  assert.ok(!(await reader.read()).done);
  const held = async (body) => server.json("/api/requests/held/hold", body);
  assert.deepEqual(await held({ allow: 0 }), { state: "held", output: 1 });
  await held({ allow: 1 });
  assert.ok(!(await reader.read()).done);
  assert.deepEqual(await held({ allow: 0 }), { state: "held", output: 2 });
  await held({ release: true });
  while (!(await reader.read()).done);
  assert.equal((await held({ allow: 1 })).state, "ended");
});

test("what is forgotten is gone", async () => {
  await (await ask("gone")).json();
  const url = `${server.url}/api/requests/gone`;
  assert.equal((await fetch(url, { method: "DELETE" })).status, 200);
  assert.equal((await fetch(`${url}/tokens`)).status, 404);
  assert.equal((await fetch(`${url}/tokens`, { method: "POST" })).status, 405);
  assert.equal((await fetch(`${url}/stages`)).status, 405);
});
