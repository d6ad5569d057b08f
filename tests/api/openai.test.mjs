// The official client.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import OpenAI from "openai";
import { Server, messages, stop_in } from "./server.mjs";

let server, client, model;
before(async () => {
  server = await Server.start();
  client = new OpenAI({ baseURL: server.base, apiKey: "none", maxRetries: 0 });
  model = await server.model_name();
});
after(() => server.stop());

const chat = (more) =>
  client.chat.completions.create({ model, messages, temperature: 0, max_tokens: 40, ...more });
const complete = (more) =>
  client.completions.create({ model, temperature: 0, max_tokens: 20, ...more });

async function collect(stream) {
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  return chunks;
}
// The text of each choice, from the chunks of a chat.
function texts(chunks, n = 1) {
  const out = Array(n).fill("");
  for (const chunk of chunks)
    for (const choice of chunk.choices) out[choice.index] += choice.delta.content ?? "";
  return out;
}
const finish = (chunks) =>
  chunks.flatMap((c) => c.choices).map((c) => c.finish_reason).filter((r) => r !== null);

test("models", async () => {
  const list = [];
  for await (const one of client.models.list()) list.push(one);
  assert.equal(list.length, 1);
  assert.equal(list[0].object, "model");
  assert.equal((await client.models.retrieve(list[0].id)).id, list[0].id);
});

test("chat", async () => {
  const answer = await chat({ max_tokens: 12 });
  assert.equal(answer.object, "chat.completion");
  assert.equal(answer.model, model);
  assert.ok(Math.abs(answer.created - Date.now() / 1000) < 60);
  const [choice] = answer.choices;
  assert.equal(choice.message.role, "assistant");
  assert.ok(choice.message.content.length > 0);
  assert.equal(choice.finish_reason, "length");
  assert.equal(answer.usage.completion_tokens, 12);
  assert.ok(answer.usage.prompt_tokens > 20);
  assert.equal(answer.usage.total_tokens, answer.usage.prompt_tokens + 12);
  assert.equal((await chat({ max_completion_tokens: 12, max_tokens: undefined }))
    .choices[0].message.content, choice.message.content);
});

test("content as a list of parts", async () => {
  const parts = [{ type: "text", text: "Hello " }, { type: "text", text: "world" }];
  const one = await chat({ messages: [{ role: "user", content: parts }] });
  const two = await chat({ messages: [{ role: "user", content: "Hello world" }] });
  assert.equal(one.choices[0].message.content, two.choices[0].message.content);
  assert.equal(one.usage.prompt_tokens, two.usage.prompt_tokens);
});

test("a stream is the same answer in pieces", async () => {
  const whole = await chat({ max_tokens: 1000 });
  const chunks = await collect(await chat({ max_tokens: 1000, stream: true }));
  assert.deepEqual(texts(chunks), [whole.choices[0].message.content]);
  assert.equal(chunks[0].choices[0].delta.role, "assistant");
  assert.deepEqual(finish(chunks), ["length"]);
  assert.equal(new Set(chunks.map((c) => c.id)).size, 1);
  for (const chunk of chunks) {
    assert.equal(chunk.object, "chat.completion.chunk");
    assert.equal(chunk.choices.length, 1);
    assert.equal(chunk.usage ?? null, null);
  }
  // A chunk for each token that shows something: bytes of unfinished characters do not.
  assert.ok(chunks.length > 500, `${chunks.length} chunks for 1000 tokens`);
});

test("usage at the end of a stream", async () => {
  const whole = await chat();
  const chunks = await collect(await chat({ stream: true, stream_options: { include_usage: true } }));
  const last = chunks.pop();
  assert.deepEqual(last.choices, []);
  assert.equal(last.usage.prompt_tokens, whole.usage.prompt_tokens);
  assert.equal(last.usage.completion_tokens, 40);
  assert.equal(last.usage.total_tokens, whole.usage.total_tokens);
  for (const chunk of chunks) assert.equal(chunk.usage, null);
});

test("the client's own helper for streams", async () => {
  const runner = client.chat.completions.stream({ model, messages, temperature: 0, max_tokens: 30 });
  let text = "";
  runner.on("content", (delta) => (text += delta));
  const final = await runner.finalChatCompletion();
  assert.equal(final.choices[0].message.content, text);
  assert.equal(text, (await chat({ max_tokens: 30 })).choices[0].message.content);
});

test("stop, as a string and in a list, in a stream and not", async () => {
  const full = await chat({ max_tokens: 120 });
  const text = full.choices[0].message.content;
  const stop = stop_in(text);
  const expected = text.slice(0, text.indexOf(stop));
  for (const value of [stop, ["not in there", stop]]) {
    const answer = await chat({ max_tokens: 120, stop: value });
    assert.equal(answer.choices[0].message.content, expected);
    assert.equal(answer.choices[0].finish_reason, "stop");
    assert.ok(answer.usage.completion_tokens < 120);
    const chunks = await collect(await chat({
      max_tokens: 120, stop: value, stream: true, stream_options: { include_usage: true } }));
    assert.deepEqual(texts(chunks), [expected]);
    assert.deepEqual(finish(chunks), ["stop"]);
    assert.deepEqual(chunks.at(-1).usage.completion_tokens, answer.usage.completion_tokens);
  }
});

test("an end token ends the text", async () => {
  const answer = await chat({ logit_bias: { 2: 100 } });
  assert.equal(answer.choices[0].finish_reason, "stop");
  assert.equal(answer.choices[0].message.content, "");
});

function check_logprobs(content, tokens, text) {
  assert.equal(content.length, tokens);
  for (const one of content) {
    assert.ok(one.logprob <= 0);
    assert.equal(one.top_logprobs.length, 3);
    // Greedy: the token is the best one.
    assert.equal(one.top_logprobs[0].token, one.token);
    assert.equal(one.top_logprobs[0].logprob, one.logprob);
    for (let i = 1; i < 3; ++i)
      assert.ok(one.top_logprobs[i].logprob <= one.top_logprobs[i - 1].logprob);
  }
  const bytes = Buffer.from(content.flatMap((one) => one.bytes ?? []));
  assert.ok(bytes.toString("utf8").startsWith(text.replace(/\ufffd+$/, "")));
}

test("log probabilities", async () => {
  const more = { logprobs: true, top_logprobs: 3 };
  const answer = await chat(more);
  const [choice] = answer.choices;
  check_logprobs(choice.logprobs.content, 40, choice.message.content);
  const chunks = await collect(await chat({ ...more, stream: true }));
  const streamed = chunks.flatMap((c) => c.choices[0].logprobs?.content ?? []);
  assert.deepEqual(streamed, choice.logprobs.content);
  assert.equal((await chat()).choices[0].logprobs ?? null, null);
});

test("several choices", async () => {
  const more = { n: 3, temperature: 1, seed: 5 };
  const answer = await chat(more);
  assert.deepEqual(answer.choices.map((c) => c.index), [0, 1, 2]);
  const found = answer.choices.map((c) => c.message.content);
  assert.equal(new Set(found).size, 3);
  assert.equal(answer.usage.completion_tokens, 120);
  const chunks = await collect(await chat({ ...more, stream: true }));
  assert.deepEqual(texts(chunks, 3), found);
  assert.deepEqual(finish(chunks), ["length", "length", "length"]);
});

test("a seed repeats its answer", async () => {
  const text = async (seed) => (await chat({ temperature: 1, seed })).choices[0].message.content;
  const one = await text(7);
  assert.equal(await text(7), one);
  assert.notEqual(await text(8), one);
});

test("requests at once get the answers they get alone", async () => {
  const prompts = Array.from({ length: 24 }, (_, i) => `the cat number ${i} sat on the mat`);
  const ask = async (prompt, i) =>
    (await complete({ prompt, temperature: i % 2, seed: i, max_tokens: 10 + i, logprobs: 2 })).choices[0];
  const alone = [];
  for (const [i, prompt] of prompts.entries()) alone.push(await ask(prompt, i));
  assert.deepEqual(await Promise.all(prompts.map(ask)), alone);
});

test("completions of text, ids and lists", async () => {
  const prompt = "hello world and the house";
  const { tokens } = await server.json("/tokenize", { prompt });
  const text = await complete({ prompt });
  assert.equal(text.object, "text_completion");
  assert.equal(text.usage.prompt_tokens, tokens.length);
  assert.equal(text.choices[0].finish_reason, "length");
  const ids = await complete({ prompt: tokens });
  assert.equal(ids.choices[0].text, text.choices[0].text);
  const list = await complete({ prompt: [prompt, "the glass"] });
  assert.equal(list.choices.length, 2);
  assert.equal(list.choices[0].text, text.choices[0].text);
  const lists = await complete({ prompt: [tokens, tokens] });
  assert.deepEqual(lists.choices.map((c) => c.text), [text.choices[0].text, text.choices[0].text]);
  assert.equal((await complete({ prompt, max_tokens: undefined })).usage.completion_tokens, 16);
  const chunks = await collect(await complete({ prompt, stream: true }));
  assert.equal(chunks.map((c) => c.choices[0].text).join(""), text.choices[0].text);
});

test("echo with log probabilities", async () => {
  const prompt = "the cat sat on the mat";
  const answer = await complete({ prompt, echo: true, logprobs: 2, max_tokens: 5 });
  const [choice] = answer.choices;
  assert.ok(choice.text.startsWith(prompt));
  const { tokens, token_logprobs, top_logprobs, text_offset } = choice.logprobs;
  const total = answer.usage.prompt_tokens + 5;
  for (const list of [tokens, token_logprobs, top_logprobs, text_offset])
    assert.equal(list.length, total);
  assert.equal(token_logprobs[0], null);
  for (const x of token_logprobs.slice(1)) assert.ok(x <= 0);
  const only = await complete({ prompt, echo: true, logprobs: 2, max_tokens: 0 });
  assert.equal(only.choices[0].text, prompt);
  assert.deepEqual(only.choices[0].logprobs.token_logprobs,
    token_logprobs.slice(0, answer.usage.prompt_tokens));
});

test("errors name the field", async () => {
  await assert.rejects(chat({ temperature: "hot" }), (e) => {
    assert.ok(e instanceof OpenAI.BadRequestError);
    assert.equal(e.param, "temperature");
    assert.equal(e.type, "invalid_request_error");
    assert.match(e.message, /temperature/);
    assert.match(e.message, /hot/);
    return true;
  });
  await assert.rejects(chat({ max_tokens: -1 }), { status: 400, param: "max_tokens" });
  await assert.rejects(chat({ no_such_field: 1 }), { status: 400, param: "no_such_field" });
  await assert.rejects(chat({ messages: [{ role: "queen", content: "" }] }), { status: 400 });
  await assert.rejects(chat({ model: "another" }), (e) => {
    assert.ok(e instanceof OpenAI.NotFoundError);
    assert.equal(e.param, "model");
    assert.equal(e.code, "model_not_found");
    return true;
  });
  await assert.rejects(client.get("/no/such/route"), OpenAI.NotFoundError);
  // An error before the first byte of a stream is a status, not a frame.
  await assert.rejects(chat({ stream: true, top_p: 2 }), { status: 400, param: "top_p" });
});

test("an answer has the request's id", async () => {
  const { response, request_id } = await client.completions
    .create({ model, prompt: "the", max_tokens: 2 }).withResponse();
  assert.ok(response.headers.get("x-request-id").length > 4);
  assert.equal(request_id, response.headers.get("x-request-id"));
});

test("abort in the middle of a stream frees the sequences", async () => {
  await server.expect_idle(1000);
  const { data: stream, response } = await client.chat.completions
    .create({ model, messages, n: 4, max_tokens: 1900, stream: true, ignore_eos: true })
    .withResponse();
  let chunks = 0;
  for await (const chunk of stream) {
    assert.ok(chunk.choices.length > 0);
    if (++chunks === 3) break;  // which aborts
  }
  await server.expect_idle(1000);
  const ended = await server.ended_of(response.headers.get("x-request-id"));
  assert.deepEqual(ended.map((one) => one.finish_reason), Array(4).fill("cancelled"));
});

test("abort before the answer frees the sequences", async () => {
  const controller = new AbortController();
  const asked = client.chat.completions.create(
    { model, messages, n: 4, max_tokens: 1900, ignore_eos: true }, { signal: controller.signal });
  setTimeout(() => controller.abort(), 30);
  await assert.rejects(asked, OpenAI.APIUserAbortError);
  await server.expect_idle(1000);
});

test("timings on request", async () => {
  const answer = await chat({ vitrine: { timings: true } });
  assert.equal(typeof answer.vitrine, "object");
  assert.equal((await chat()).vitrine, undefined);
});

test("beam search", async () => {
  const more = { prompt: "The ", use_beam_search: true, n: 3, beams: 4, max_tokens: 8 };
  const answer = await complete(more);
  assert.equal(answer.choices.length, 3);
  const scores = answer.choices.map((c) => c.score);
  assert.ok(scores.every((s, i) => s < 0 && (i === 0 || s <= scores[i - 1])), String(scores));
  assert.equal(new Set(answer.choices.map((c) => c.text)).size, 3);
  // As a stream: the same texts, and each choice's last chunk has its score.
  const said = ["", "", ""];
  for (const chunk of await collect(await complete({ ...more, stream: true })))
    for (const choice of chunk.choices) {
      said[choice.index] += choice.text;
      if (choice.finish_reason !== null) assert.equal(choice.score, scores[choice.index]);
    }
  assert.deepEqual(said, answer.choices.map((c) => c.text));
  const talk = await chat({ use_beam_search: true, n: 2, length_penalty: 0, early_stopping: "never", max_tokens: 6 });
  assert.equal(talk.choices.length, 2);
  assert.ok(talk.choices[0].score >= talk.choices[1].score);
  await assert.rejects(complete({ ...more, temperature: 0.5 }), (e) => e.status === 400 && e.param === "temperature");
});
