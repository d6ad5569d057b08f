// The bytes of a stream: whatever pieces the network cuts them into, a parser finds the same events.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createParser } from "eventsource-parser";
import { Server, messages } from "./server.mjs";

let server;
before(async () => { server = await Server.start(); });
after(() => server.stop());

async function bytes_of(path, body) {
  const answer = await server.post(path, { ...body, stream: true });
  assert.equal(answer.status, 200);
  assert.match(answer.headers.get("content-type"), /^text\/event-stream/);
  return new Uint8Array(await answer.arrayBuffer());
}

// The events found when the bytes come in these pieces.
function events_of(pieces) {
  const out = [];
  const parser = createParser({
    onEvent: (event) => out.push(event.data),
    onError: (error) => assert.fail(`${error}`),
  });
  const decoder = new TextDecoder();
  for (const piece of pieces) parser.feed(decoder.decode(piece, { stream: true }));
  return out;
}

// Where to cut, from a small generator of our own, so that a failure repeats.
function* cuts(length, seed, mean) {
  let state = seed >>> 0;
  for (let at = 0; at < length;) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    at += 1 + (state >>> 8) % (2 * mean);
    if (at < length) yield at;
  }
}
const split = (bytes, places) => {
  const ends = [...places, bytes.length];
  return ends.map((end, i) => bytes.subarray(i === 0 ? 0 : ends[i - 1], end));
};

const requests = [
  ["/v1/chat/completions",
    { messages, max_tokens: 100, temperature: 1, seed: 1, logprobs: true, top_logprobs: 2,
      stream_options: { include_usage: true } }],
  ["/v1/completions", { prompt: "the cat", max_tokens: 100, temperature: 1, seed: 2, n: 3 }],
];

for (const [path, body] of requests)
  test(`${path} under many split points`, async () => {
    const bytes = await bytes_of(path, body);
    const expected = events_of([bytes]);
    assert.equal(expected.at(-1), "[DONE]");
    assert.ok(expected.length > 50, `${expected.length} events for 100 tokens or more`);
    for (const event of expected.slice(0, -1))
      assert.equal(typeof JSON.parse(event).id, "string");
    for (let at = 1; at < bytes.length; ++at) {
      // Every byte of the beginning, and every byte around the end of a line.
      if (at > 2000 && bytes[at] !== 10 && bytes[at - 1] !== 10) continue;
      assert.deepEqual(events_of(split(bytes, [at])), expected);
    }
    for (let seed = 1; seed <= 60; ++seed)
      assert.deepEqual(events_of(split(bytes, cuts(bytes.length, seed, 1 + seed))), expected);
    assert.deepEqual(events_of([...bytes].map((byte) => Uint8Array.of(byte))), expected);
  });

test("the text of the events is the text of the answer", async () => {
  const [, { prompt, max_tokens, temperature, seed, n }] = requests[1];
  const body = { prompt, max_tokens, temperature, seed, n };
  const whole = await server.json("/v1/completions", body);
  const texts = ["", "", ""];
  for (const event of events_of([await bytes_of("/v1/completions", body)]).slice(0, -1))
    for (const choice of JSON.parse(event).choices) texts[choice.index] += choice.text;
  assert.deepEqual(texts, whole.choices.map((c) => c.text));
});
