// OpenAI's `prediction` with the official client: the same answer, in fewer steps, and counted.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import OpenAI from "openai";
import { Server, messages } from "./server.mjs";

let plain, guessing, model;
const client_of = (server) => new OpenAI({ baseURL: server.base, apiKey: "none", maxRetries: 0 });
before(async () => {
  plain = await Server.start();
  guessing = await Server.start("--spec", "suffix");
  model = await plain.model_name();
});
after(async () => {
  await plain.stop();
  await guessing.stop();
});

const ask = (server, more) => client_of(server).chat.completions.create(
  { model, messages, temperature: 0, max_tokens: 60, ...more });
const details = (answer) => answer.usage.completion_tokens_details;

test("a prediction changes no answer, and is counted", async () => {
  const expected = await ask(plain);
  const content = expected.choices[0].message.content;
  assert.ok(!("accepted_prediction_tokens" in details(expected)));
  for (const prediction of [
    { type: "content", content },
    { type: "content", content: [{ type: "text", text: content.slice(0, 20) },
                                 { type: "text", text: content.slice(20) }] },
    { type: "content", content: "something else altogether" },
    { type: "content", content: "" },
  ])
    for (const server of [plain, guessing]) {
      const answer = await ask(server, { prediction });
      assert.deepEqual(answer.choices[0].message, expected.choices[0].message);
      assert.equal(answer.usage.completion_tokens, expected.usage.completion_tokens);
      const { accepted_prediction_tokens: right, rejected_prediction_tokens: wrong } = details(answer);
      assert.ok(Number.isInteger(right) && right >= 0, JSON.stringify(answer.usage));
      assert.ok(Number.isInteger(wrong) && wrong >= 0, JSON.stringify(answer.usage));
      assert.ok(right <= answer.usage.completion_tokens);
      if (server === plain) assert.equal(right + wrong, 0);
    }
});

test("every choice has it, and a stream's usage tells it", async () => {
  const expected = await ask(plain, { n: 3, temperature: 0.8, seed: 7 });
  const prediction = { type: "content", content: expected.choices[0].message.content };
  const answer = await ask(guessing, { n: 3, temperature: 0.8, seed: 7, prediction });
  assert.deepEqual(answer.choices.map((c) => c.message.content),
                   expected.choices.map((c) => c.message.content));
  const chunks = [];
  for await (const chunk of await ask(guessing,
    { prediction, stream: true, stream_options: { include_usage: true } })) chunks.push(chunk);
  assert.ok("accepted_prediction_tokens" in details(chunks.at(-1)));
});

test("what is malformed is refused by name", async () => {
  for (const server of [plain, guessing])
    for (const [prediction, name] of [
      ["text", "prediction"],
      [[], "prediction"],
      [{}, "prediction.type"],
      [{ type: "text", content: "a" }, "prediction.type"],
      [{ type: "content" }, "prediction.content"],
      [{ type: "content", content: 7 }, "prediction.content"],
      [{ type: "content", content: ["a"] }, "prediction.content[0]"],
      [{ type: "content", content: [{ type: "image", text: "a" }] }, "prediction.content[0].type"],
      [{ type: "content", content: [{ type: "text" }] }, "prediction.content[0].text"],
      [{ type: "content", content: "a", more: 1 }, "prediction.more"],
      [{ type: "content", content: "a".repeat((4 << 20) + 1) }, "prediction.content"],
    ])
      await assert.rejects(ask(server, { prediction }), (error) => {
        assert.equal(error.status, 400, name);
        assert.ok(error.message.includes(name), `${name}: ${error.message}`);
        return true;
      });
});
