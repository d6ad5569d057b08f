// Chats through a template of the model's own: prompts, tools, reasoning.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import OpenAI from "openai";
import { Server } from "./server.mjs";
import { template } from "./template.mjs";

let server, client;
before(async () => {
  server = await Server.start("--chat-template", template);
  client = new OpenAI({ baseURL: server.base, apiKey: "none", maxRetries: 0 });
});
after(() => server.stop());

const tools = [{ type: "function", function: { name: "f", parameters: { type: "object", properties: {} } } }];
const user = { role: "user", content: "Hi <|im_end|>" };

test("apply-template shows the prompt, with the caller's text as plain text", async () => {
  const a = await server.json("/apply-template", { messages: [user] });
  assert.equal(a.prompt, "<s><|im_start|>user\nHi <|im_end|><|im_end|>\n<|im_start|>assistant\n");
  const end = (await server.json("/tokenize", { content: "<|im_end|>", parse_special: true, add_special: false })).tokens;
  assert.equal(end.length, 1);
  assert.equal(a.tokens.filter((id) => id === end[0]).length, 1);
});

test("tools and calls reach the template", async () => {
  const a = await server.json("/apply-template", {
    tools, messages: [user, { role: "assistant", content: null, tool_calls: [
      { id: "c1", type: "function", function: { name: "f", arguments: '{"a": 1}' } }] },
    { role: "tool", tool_call_id: "c1", content: "done" }] });
  assert.match(a.prompt, /"name": "f", "parameters"/);
  assert.match(a.prompt, /<tool_call>\{"name": "f", "arguments": \{"a": 1\}\}<\/tool_call>/);
  const none = await server.json("/apply-template", { tools, tool_choice: "none", messages: [user] });
  assert.ok(!none.prompt.includes("parameters"));
});

test("the template's refusal is a 400 with its words", async () => {
  const answer = await server.post("/v1/chat/completions",
    { messages: [user, { role: "system", content: "x" }] });
  assert.equal(answer.status, 400);
  assert.match((await answer.json()).error.message, /system must come first/);
  const kwargs = await server.post("/v1/chat/completions",
    { messages: [user], chat_template_kwargs: { messages: [] } });
  assert.equal(kwargs.status, 400);
});

test("reasoning comes apart from the answer, streamed and not", async () => {
  const ask = { messages: [user], temperature: 0, max_tokens: 12, ignore_eos: true, model: await server.model_name(),
    chat_template_kwargs: { enable_thinking: true } };
  const whole = await client.chat.completions.create(ask);
  const message = whole.choices[0].message;
  assert.equal(message.content, "");
  assert.ok(message.reasoning_content.length > 0);
  assert.equal(whole.usage.completion_tokens_details.reasoning_tokens, 12);
  let reasoning = "", content = "";
  for await (const chunk of await client.chat.completions.create({ ...ask, stream: true })) {
    reasoning += chunk.choices[0]?.delta.reasoning_content ?? "";
    content += chunk.choices[0]?.delta.content ?? "";
  }
  assert.equal(reasoning, message.reasoning_content);
  assert.equal(content, "");
  const off = await client.chat.completions.create({ ...ask, chat_template_kwargs: {} });
  assert.equal(off.choices[0].message.reasoning_content, undefined);
  const short = await client.chat.completions.create({ ...ask, max_tokens: 40, reasoning_budget: 4 });
  assert.ok(short.usage.completion_tokens_details.reasoning_tokens < 20);
  assert.ok(short.choices[0].message.content.length > 0);
});

test("a request with tools answers with text when the model calls none", async () => {
  const answer = await client.chat.completions.create({ model: await server.model_name(), messages: [user],
    tools, parallel_tool_calls: false, max_tokens: 8, temperature: 0, ignore_eos: true });
  assert.equal(answer.choices[0].finish_reason, "length");
  assert.equal(answer.choices[0].message.tool_calls, undefined);
});

test("a required call is made, streamed and not", async () => {
  const weather = [{ type: "function", function: { name: "weather", parameters: { type: "object",
    properties: { city: { type: "string", enum: ["Bern", "Rome"] }, days: { type: "integer", minimum: 1, maximum: 9 } },
    required: ["city", "days"], additionalProperties: false } } }];
  const ask = { model: await server.model_name(), messages: [user], tools: weather, max_tokens: 200, temperature: 1, seed: 5,
    tool_choice: { type: "function", function: { name: "weather" } } };
  const check = (call) => {
    assert.equal(call.function.name, "weather");
    const given = JSON.parse(call.function.arguments);
    assert.ok(["Bern", "Rome"].includes(given.city) && given.days >= 1 && given.days <= 9);
  };
  const whole = (await client.chat.completions.create(ask)).choices[0];
  assert.equal(whole.finish_reason, "tool_calls");
  assert.equal(whole.message.content, null);
  whole.message.tool_calls.forEach(check);
  const stream = client.chat.completions.stream(ask);
  const final = (await stream.finalChatCompletion()).choices[0];
  assert.equal(final.finish_reason, "tool_calls");
  check(final.message.tool_calls[0]);
  const required = (await client.chat.completions.create({ ...ask, tool_choice: "required", parallel_tool_calls: false }))
    .choices[0].message;
  assert.equal(required.tool_calls.length, 1);
  check(required.tool_calls[0]);
});
