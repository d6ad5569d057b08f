// Tool calls through the clients people use, from a model of random weights.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import OpenAI from "openai";
import { Server } from "./server.mjs";
import { template } from "./template.mjs";

let server, client, model;
before(async () => {
  server = await Server.start("--chat-template", template);
  client = new OpenAI({ baseURL: server.base, apiKey: "none", maxRetries: 0 });
  model = await server.model_name();
});
after(() => server.stop());

const messages = [{ role: "user", content: "The cat sat on the mat." }];
const parameters = {
  type: "object",
  properties: {
    city: { type: "string", enum: ["Bern", "Rome"] },
    days: { type: "integer", minimum: 1, maximum: 9 },
    note: { type: "string", maxLength: 30 },
  },
  required: ["city", "days", "note"],
  additionalProperties: false,
};
const tools = [{ type: "function", function: { name: "weather", parameters } }];
const check = (given) => {
  assert.deepEqual(Object.keys(given), ["city", "days", "note"]);
  assert.ok(["Bern", "Rome"].includes(given.city) && given.days >= 1 && given.days <= 9);
};
const ask = (more) => ({ model, messages, tools, max_tokens: 300, temperature: 1, seed: 5,
  tool_choice: "required", ...more });

test("a call's deltas: id and name, then arguments as they are written", async () => {
  const whole = (await client.chat.completions.create(ask())).choices[0];
  const calls = [];
  let deltas = 0, finish = null;
  for await (const chunk of await client.chat.completions.create(ask({ stream: true })))
    for (const { delta, finish_reason } of chunk.choices) {
      finish ??= finish_reason;
      for (const { index, id, type, function: f } of delta.tool_calls ?? []) {
        ++deltas;
        if (index === calls.length) {
          assert.match(id, /^[0-9a-z]{9}$/);
          assert.equal(type, "function");
          calls.push({ name: f.name, arguments: "" });
        } else {
          assert.deepEqual([id, type, f.name], [undefined, undefined, undefined]);
        }
        assert.equal(index, calls.length - 1);
        calls[index].arguments += f.arguments;
      }
    }
  assert.equal(finish, "tool_calls");
  assert.ok(deltas > 4 * calls.length, `${deltas} deltas`);
  assert.deepEqual(calls, whole.message.tool_calls.map(({ function: f }) => f));
  for (const call of calls) check(JSON.parse(call.arguments));
});

test("openai's streaming helper", async () => {
  const stream = client.chat.completions.stream(ask({ parallel_tool_calls: false }));
  let deltas = "", done = null;
  stream.on("tool_calls.function.arguments.delta", ({ name, arguments_delta }) => {
    assert.equal(name, "weather");
    deltas += arguments_delta;
  });
  stream.on("tool_calls.function.arguments.done", (event) => (done = event));
  const { message, finish_reason } = (await stream.finalChatCompletion()).choices[0];
  assert.equal(finish_reason, "tool_calls");
  assert.equal(message.tool_calls.length, 1);
  assert.equal(message.tool_calls[0].function.arguments, deltas);
  assert.equal(done.arguments, deltas);
  check(JSON.parse(deltas));
});
