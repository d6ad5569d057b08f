// Tool calls through the clients people use, from a model of random weights.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, jsonSchema, stepCountIs, streamText, tool } from "ai";
import OpenAI from "openai";
import { zodFunction } from "openai/helpers/zod";
import { z } from "zod";
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

test("openai's parse gives arguments as objects", async () => {
  const Weather = z.object({ city: z.enum(["Bern", "Rome"]), days: z.number().int().min(1).max(9) });
  const parsed = await client.chat.completions.parse(
    ask({ tools: [zodFunction({ name: "weather", parameters: Weather })] }));
  for (const { function: f } of parsed.choices[0].message.tool_calls)
    assert.ok(Weather.safeParse(f.parsed_arguments).success);
});

test("openai's tool runner executes a call", async () => {
  const seen = [];
  const runner = client.chat.completions.runTools({
    ...ask({ tool_choice: { type: "function", function: { name: "weather" } } }),
    tools: [{ type: "function", function: { ...tools[0].function, parse: JSON.parse,
      function: (given) => (seen.push(given), "rain") } }] });
  assert.equal(await runner.finalFunctionToolCallResult(), "rain");
  assert.equal(seen.length, 1);
  check(seen[0]);
});

test("reasoning within a budget, then what the answer must be", async () => {
  const thinking = { chat_template_kwargs: { enable_thinking: true }, reasoning_budget: 6 };
  const called = (await client.chat.completions.create(ask(thinking)));
  for (const { function: f } of called.choices[0].message.tool_calls) check(JSON.parse(f.arguments));
  assert.ok(called.choices[0].message.reasoning_content.length > 0);
  assert.ok(called.usage.completion_tokens_details.reasoning_tokens < 20);
  const text = { tools: undefined, tool_choice: undefined, regex: "[0-9]{3}", ...thinking };
  for (const more of [{}, { chat_template_kwargs: {} }]) {
    const { message, finish_reason } = (await client.chat.completions.create(ask({ ...text, ...more }))).choices[0];
    assert.match(message.content, /^[0-9]{3}$/);
    assert.equal(finish_reason, "stop");
  }
});

test("with a response_format the answer is calls or text of that form", async () => {
  const schema = { type: "object", properties: { mood: { enum: ["good", "bad"] } }, required: ["mood"],
    additionalProperties: false };
  const strict = [{ type: "function", function: { ...tools[0].function, strict: true } }];
  let texts = 0, calls = 0;
  for (let seed = 0; seed < 16; ++seed) {
    const body = ask({ tools: strict, tool_choice: "auto", parallel_tool_calls: false, seed,
      response_format: { type: "json_schema", json_schema: { name: "mood", strict: true, schema } } });
    const { message, finish_reason } = (await client.chat.completions.create(body)).choices[0];
    if (finish_reason === "tool_calls") {
      for (const { function: f } of message.tool_calls) check(JSON.parse(f.arguments));
      ++calls;
    } else {
      assert.equal(finish_reason, "stop");
      assert.ok(["good", "bad"].includes(JSON.parse(message.content).mood));
      ++texts;
    }
  }
  assert.ok(texts > 0 && calls > 0, `${texts} texts, ${calls} calls`);
});

test("calls go back without content", async () => {
  const called = (await client.chat.completions.create(ask())).choices[0].message;
  assert.equal(called.content, null);
  const results = called.tool_calls.map(({ id }) => ({ role: "tool", tool_call_id: id, content: "rain" }));
  const { prompt } = await server.json("/apply-template", { messages: [...messages, called, ...results], tools });
  assert.ok(!prompt.includes("None") && prompt.includes("rain"), prompt);
});

const weather = (execute) => ({ weather: tool({ description: "the weather",
  inputSchema: jsonSchema(parameters), execute }) });

test("ai: generateText calls a tool, gets its result and goes on", async () => {
  const provider = createOpenAICompatible({ name: "vitrine", baseURL: server.base });
  const given = [];
  const answer = await generateText({ model: provider(model), prompt: "The cat?", maxRetries: 0,
    maxOutputTokens: 300, seed: 5, temperature: 1, toolChoice: { type: "tool", toolName: "weather" },
    stopWhen: stepCountIs(2),
    prepareStep: ({ stepNumber }) => stepNumber > 0 ? { toolChoice: "none" } : {},
    tools: weather((input) => (given.push(input), { sky: "blue" })) });
  assert.equal(answer.steps.length, 2);
  assert.equal(answer.steps[0].finishReason, "tool-calls");
  assert.ok(given.length > 0 && given.length === answer.steps[0].toolResults.length);
  given.forEach(check);
  assert.equal(typeof answer.text, "string");
});

test("ai: streamText shows a call's input as it is written", async () => {
  const provider = createOpenAICompatible({ name: "vitrine", baseURL: server.base });
  const stream = streamText({ model: provider(model), prompt: "The cat?", maxRetries: 0,
    maxOutputTokens: 300, seed: 5, temperature: 1, toolChoice: { type: "tool", toolName: "weather" },
    tools: weather() });
  const inputs = {};
  let pieces = 0;
  for await (const part of stream.fullStream) {
    if (part.type === "tool-input-start") inputs[part.id] = "";
    if (part.type === "tool-input-delta") inputs[part.id] += part.delta, ++pieces;
    assert.notEqual(part.type, "error", JSON.stringify(part));
  }
  const calls = await stream.toolCalls;
  assert.ok(calls.length > 0 && pieces > 4 * calls.length);
  for (const { toolCallId, toolName, input } of calls) {
    assert.equal(toolName, "weather");
    assert.deepEqual(JSON.parse(inputs[toolCallId]), input);
    check(input);
  }
});

// Choices, calls, forms, stop strings and streams at once, on pages for a fraction of them: the
// answers are those of each request alone on a machine with room.
test("everything together, with too few pages", async () => {
  const crowded = await Server.start("--chat-template", template, "--sequences", "16",
    "--ctx", "768", "--kv-tokens", "768", "--page-size", "16");
  try {
    const tight = new OpenAI({ baseURL: crowded.base, apiKey: "none", maxRetries: 0 });
    const kinds = [
      {},
      { parallel_tool_calls: false, logprobs: true },
      { tools: undefined, tool_choice: undefined, regex: "[a-z]{100,200}", stop: ["qq", "zz"] },
      { tools: undefined, tool_choice: undefined, response_format: { type: "json_schema",
        json_schema: { name: "w", strict: true, schema: parameters } } },
      { chat_template_kwargs: { enable_thinking: true }, reasoning_budget: 9 },
      { tool_choice: "auto", max_tokens: 90, stop: "the" },
    ];
    const requests = Array.from({ length: 18 }, (_, i) => ask({ ...kinds[i % kinds.length], seed: i, n: 3,
      temperature: 1 }));
    const strip = (choices) => choices.map(({ index, finish_reason, message }) => ({ index, finish_reason,
      content: message.content ?? "", reasoning: message.reasoning_content ?? "",
      calls: (message.tool_calls ?? []).map(({ function: f }) => [f.name, f.arguments]) }));
    const streamed = async (who, body) => {
      const out = Array.from({ length: 3 }, (_, index) => ({ index, finish_reason: null, message:
        { content: "", reasoning_content: "", tool_calls: [] } }));
      for await (const { choices } of await who.chat.completions.create({ ...body, stream: true }))
        for (const { index, delta, finish_reason } of choices) {
          const { message } = out[index];
          out[index].finish_reason ??= finish_reason;
          message.content += delta.content ?? "";
          message.reasoning_content += delta.reasoning_content ?? "";
          for (const call of delta.tool_calls ?? []) {
            message.tool_calls[call.index] ??= { function: { name: call.function.name, arguments: "" } };
            message.tool_calls[call.index].function.arguments += call.function.arguments;
          }
        }
      return out;
    };
    const alone = [];
    for (const body of requests) alone.push(strip((await client.chat.completions.create(body)).choices));
    const together = await Promise.all(requests.map((body, i) => i % 2 === 0
      ? streamed(tight, body) : tight.chat.completions.create(body).then((a) => a.choices)));
    together.forEach((choices, i) => assert.deepEqual(strip(choices), alone[i], `request ${i}`));
    const metrics = await (await fetch(`${crowded.url}/metrics`)).text();
    const preempted = Number(metrics.match(/num_preemptions_total\{[^}]*\} (\d+)/)[1]);
    assert.ok(preempted > 0, "nothing was preempted");
    await crowded.expect_idle(1000);
  } finally {
    await crowded.stop();
  }
});
