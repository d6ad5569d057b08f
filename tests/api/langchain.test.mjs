// LangChain's client.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { AIMessage, HumanMessage, SystemMessage } from "@langchain/core/messages";
import { ChatOpenAI, OpenAI } from "@langchain/openai";
import { Server, messages, sleep, stop_in } from "./server.mjs";

let server, model;
before(async () => {
  server = await Server.start();
  model = await server.model_name();
});
after(() => server.stop());

const client = (more = {}) => new ChatOpenAI({
  model, apiKey: "none", temperature: 0, maxTokens: 40, maxRetries: 0,
  configuration: { baseURL: server.base }, ...more });
const plain = (more = {}) => server.json("/v1/chat/completions",
  { messages, temperature: 0, max_tokens: 40, ...more });

const talk = [
  new SystemMessage(messages[0].content),
  new HumanMessage(messages[1].content),
];

async function collect(stream) {
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  return chunks;
}

test("invoke, with usage", async () => {
  const expected = await plain();
  const answer = await client().invoke(talk);
  assert.ok(answer instanceof AIMessage);
  assert.equal(answer.content, expected.choices[0].message.content);
  assert.equal(answer.usage_metadata.input_tokens, expected.usage.prompt_tokens);
  assert.equal(answer.usage_metadata.output_tokens, 40);
  assert.equal(answer.usage_metadata.total_tokens, expected.usage.total_tokens);
  assert.equal(answer.response_metadata.finish_reason, "length");
});

test("an answer can be sent back", async () => {
  const first = await client().invoke(talk);
  const second = await client().invoke([...talk, first, new HumanMessage("And the house?")]);
  assert.ok(second.usage_metadata.input_tokens > first.usage_metadata.input_tokens + 30);
});

test("stream, with usage at the end", async () => {
  const expected = await plain();
  const chunks = await collect(await client({ streamUsage: true }).stream(talk));
  assert.ok(chunks.length > 5);
  const all = chunks.reduce((sum, chunk) => sum.concat(chunk));
  assert.equal(all.content, expected.choices[0].message.content);
  assert.equal(all.usage_metadata.input_tokens, expected.usage.prompt_tokens);
  assert.equal(all.usage_metadata.output_tokens, 40);
  assert.equal(all.response_metadata.finish_reason, "length");
});

test("stop", async () => {
  const text = (await plain({ max_tokens: 120 })).choices[0].message.content;
  const stop = stop_in(text);
  const expected = text.slice(0, text.indexOf(stop));
  for (const list of [[stop], ["not in there", stop]]) {
    const answer = await client({ maxTokens: 120 }).invoke(talk, { stop: list });
    assert.equal(answer.content, expected);
    assert.equal(answer.response_metadata.finish_reason, "stop");
    const chunks = await collect(await client({ maxTokens: 120 }).stream(talk, { stop: list }));
    assert.equal(chunks.map((c) => c.content).join(""), expected);
  }
});

test("log probabilities", async () => {
  const expected = await plain({ logprobs: true, top_logprobs: 2 });
  const answer = await client({ logprobs: true, topLogprobs: 2 }).invoke(talk);
  assert.deepEqual(answer.response_metadata.logprobs, expected.choices[0].logprobs);
});

test("several choices", async () => {
  const expected = await plain({ n: 3, temperature: 1, seed: 3 });
  const answer = await client({ n: 3, temperature: 1, modelKwargs: { seed: 3 } }).generate([talk]);
  assert.deepEqual(answer.generations[0].map((g) => g.text),
    expected.choices.map((c) => c.message.content));
});

test("a seed repeats its answer", async () => {
  const ask = async (seed) =>
    (await client({ temperature: 1, modelKwargs: { seed } }).invoke(talk)).content;
  assert.equal(await ask(11), await ask(11));
  assert.notEqual(await ask(11), await ask(12));
});

test("a batch gives each the answer it gets alone", async () => {
  const questions = Array.from({ length: 12 }, (_, i) => `Where is cat ${i}?`);
  const alone = [];
  for (const question of questions) alone.push((await client().invoke(question)).content);
  const batch = await client().batch(questions, { maxConcurrency: 12 });
  assert.deepEqual(batch.map((m) => m.content), alone);
});

test("errors", async () => {
  await assert.rejects(client({ temperature: -1 }).invoke(talk), (e) => {
    assert.equal(e.status, 400);
    assert.equal(e.param, "temperature");
    return true;
  });
  await assert.rejects(client({ model: "another" }).invoke(talk), { status: 404 });
  await assert.rejects(client({ topP: 3 }).stream(talk).then(collect), { status: 400 });
  const lost = client({ configuration: { baseURL: `${server.url}/v2` } });
  await assert.rejects(lost.invoke(talk), { status: 404 });
});

test("abort in the middle of a stream", async () => {
  await server.expect_idle(1000);
  const controller = new AbortController();
  const long = client({ maxTokens: 1900, modelKwargs: { ignore_eos: true } });
  const stream = await long.stream(talk, { signal: controller.signal });
  await assert.rejects(async () => {
    for await (const chunk of stream) {
      assert.equal(typeof chunk.content, "string");
      controller.abort();
      await sleep(1);
    }
  });
  await server.expect_idle(1000);
});

test("completions", async () => {
  const prompt = "the cat sat on";
  const expected = await server.json("/v1/completions", { prompt, max_tokens: 20, temperature: 0 });
  const llm = new OpenAI({ model, apiKey: "none", temperature: 0, maxTokens: 20, maxRetries: 0,
                           configuration: { baseURL: server.base } });
  assert.equal(await llm.invoke(prompt), expected.choices[0].text);
  const pieces = await collect(await llm.stream(prompt));
  assert.equal(pieces.join(""), expected.choices[0].text);
});
