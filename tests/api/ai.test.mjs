// Vercel's AI SDK.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { APICallError, generateText, streamText } from "ai";
import { Server, messages, stop_in } from "./server.mjs";

let server, provider, model;
before(async () => {
  server = await Server.start();
  provider = createOpenAICompatible({ name: "vitrine", baseURL: server.base, includeUsage: true });
  model = provider(await server.model_name());
});
after(() => server.stop());

const [{ content: system }, { content: prompt }] = messages;
const settings = (more = {}) =>
  ({ model, system, prompt, temperature: 0, maxOutputTokens: 40, maxRetries: 0, ...more });
const plain = (more = {}) => server.json("/v1/chat/completions",
  { messages, temperature: 0, max_tokens: 40, ...more });
const own = (options) => ({ providerOptions: { vitrine: options } });

test("generateText, with usage", async () => {
  const expected = await plain();
  const answer = await generateText(settings());
  assert.equal(answer.text, expected.choices[0].message.content);
  assert.equal(answer.finishReason, "length");
  assert.equal(answer.usage.inputTokens, expected.usage.prompt_tokens);
  assert.equal(answer.usage.outputTokens, 40);
});

test("streamText, with usage", async () => {
  const expected = await plain();
  const stream = streamText(settings());
  let text = "", pieces = 0;
  for await (const piece of stream.textStream) text += piece, ++pieces;
  assert.equal(text, expected.choices[0].message.content);
  assert.ok(pieces > 5);
  assert.equal(await stream.finishReason, "length");
  const usage = await stream.usage;
  assert.equal(usage.inputTokens, expected.usage.prompt_tokens);
  assert.equal(usage.outputTokens, 40);
});

test("stop sequences", async () => {
  const text = (await plain({ max_tokens: 120 })).choices[0].message.content;
  const stop = stop_in(text);
  for (const stopSequences of [[stop], ["not in there", stop]]) {
    const answer = await generateText(settings({ maxOutputTokens: 120, stopSequences }));
    assert.equal(answer.text, text.slice(0, text.indexOf(stop)));
    assert.equal(answer.finishReason, "stop");
    const stream = streamText(settings({ maxOutputTokens: 120, stopSequences }));
    assert.equal(await stream.text, answer.text);
    assert.equal(await stream.finishReason, "stop");
  }
});

test("log probabilities", async () => {
  const expected = await plain({ logprobs: true, top_logprobs: 2 });
  const answer = await generateText(settings(own({ logprobs: true, top_logprobs: 2 })));
  assert.deepEqual(answer.response.body.choices[0].logprobs, expected.choices[0].logprobs);
});

test("a seed repeats its answer", async () => {
  const ask = async (seed) => (await generateText(settings({ temperature: 1, seed }))).text;
  assert.equal(await ask(4), await ask(4));
  assert.notEqual(await ask(4), await ask(5));
});

test("requests at once get the answers they get alone", async () => {
  const ask = async (i) => (await generateText(settings({ prompt: `Cat ${i}?` }))).text;
  const numbers = Array.from({ length: 12 }, (_, i) => i);
  const alone = [];
  for (const i of numbers) alone.push(await ask(i));
  assert.deepEqual(await Promise.all(numbers.map(ask)), alone);
});

test("completions", async () => {
  const expected = await server.json("/v1/completions",
    { prompt: "the cat sat on", max_tokens: 20, temperature: 0 });
  const completion = provider.completionModel(await server.model_name());
  const options = {
    prompt: [{ role: "user", content: [{ type: "text", text: "the cat sat on" }] }],
    temperature: 0, maxOutputTokens: 20,
  };
  // The SDK makes a small dialogue of the prompt, so only the shape can be compared.
  const { content, usage, finishReason } = await completion.doGenerate(options);
  assert.equal(typeof content[0].text, "string");
  assert.equal(finishReason.unified ?? finishReason, expected.choices[0].finish_reason);
  assert.ok(JSON.stringify(usage).includes("20"));
});

test("errors", async () => {
  const refused = (status, param) => (e) => {
    assert.ok(APICallError.isInstance(e), `${e}`);
    assert.equal(e.statusCode, status);
    assert.equal(JSON.parse(e.responseBody).error.param, param);
    return true;
  };
  await assert.rejects(generateText(settings({ temperature: -3 })), refused(400, "temperature"));
  await assert.rejects(generateText(settings(own({ n: 0 }))), refused(400, "n"));
  await assert.rejects(generateText(settings({ model: provider("another") })), refused(404, "model"));
  const lost = createOpenAICompatible({ name: "vitrine", baseURL: `${server.url}/v2` });
  await assert.rejects(generateText(settings({ model: lost("any") })),
    (e) => APICallError.isInstance(e) && e.statusCode === 404);
});

test("abort in the middle of a stream", async () => {
  await server.expect_idle(1000);
  const controller = new AbortController();
  const stream = streamText(settings({
    maxOutputTokens: 1900, abortSignal: controller.signal, ...own({ ignore_eos: true }) }));
  let pieces = 0, aborted = false;
  for await (const part of stream.fullStream) {
    if (part.type === "text-delta" && ++pieces === 3) controller.abort();
    if (part.type === "abort") aborted = true;
  }
  assert.ok(aborted);
  await server.expect_idle(1000);
});
