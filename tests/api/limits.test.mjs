// Keys, and a full queue, as clients meet them.
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { ChatOpenAI } from "@langchain/openai";
import { APICallError, generateText } from "ai";
import OpenAI from "openai";
import { Server, messages } from "./server.mjs";

test("API keys guard everything but /health", async () => {
  const folder = await mkdtemp(join(tmpdir(), "vitrine-keys-"));
  await writeFile(join(folder, "keys"), "first-secret alice\nsecond-secret bob 2\n");
  const server = await Server.start("--api-keys", join(folder, "keys"));
  try {
    const client = (apiKey) => new OpenAI({ baseURL: server.base, apiKey, maxRetries: 0 });
    for (const key of ["first-secret", "second-secret"]) {
      const model = (await client(key).models.list()).data[0].id;
      const answer = await client(key).chat.completions.create({ model, messages, max_tokens: 3 });
      assert.equal(answer.usage.completion_tokens, 3);
    }
    for (const key of ["wrong", "first-secre", "first-secret ", "alice"]) {
      await assert.rejects(client(key).models.list(), OpenAI.AuthenticationError);
      await assert.rejects(client(key).completions.create({ prompt: "a" }),
        OpenAI.AuthenticationError);
    }
    const chat = new ChatOpenAI({
      model: "any", apiKey: "wrong", maxRetries: 0, configuration: { baseURL: server.base } });
    await assert.rejects(chat.invoke("hello"), { status: 401 });
    const provider = createOpenAICompatible({ name: "vitrine", baseURL: server.base, apiKey: "wrong" });
    await assert.rejects(generateText({ model: provider("any"), prompt: "a", maxRetries: 0 }),
      (e) => APICallError.isInstance(e) && e.statusCode === 401);
    assert.equal((await fetch(`${server.url}/health`)).status, 200);
    for (const path of ["/ready", "/metrics", "/v1/models", "/api/info", "/api/snapshot",
                        "/api/requests", "/api/requests/1", "/no/such"]) {
      const answer = await fetch(server.url + path);
      assert.equal(answer.status, 401, path);
      assert.equal(typeof (await answer.json()).error.message, "string");
    }
    for (const path of ["/v1/completions", "/v1/chat/completions", "/tokenize", "/detokenize"])
      assert.equal((await server.post(path, {})).status, 401, path);
  } finally {
    await server.stop();
    await rm(folder, { recursive: true });
  }
});

// Remembers when each answer came and each request left.
function recording_fetch(log) {
  return async (url, init) => {
    const sent = performance.now();
    const answer = await fetch(url, init);
    log.push({ sent, status: answer.status, at: performance.now(),
               retry_after: Number(answer.headers.get("retry-after")) });
    return answer;
  };
}

test("a full queue is 429 with Retry-After, which clients honour", async () => {
  const server = await Server.start("--sequences", "1", "--max-queue", "1");
  try {
    const model = await server.model_name();
    const body = { model, messages, max_tokens: 1500, temperature: 0, ignore_eos: true };
    const ask = (client) => client.chat.completions.create(body);

    const proud = new OpenAI({ baseURL: server.base, apiKey: "x", maxRetries: 0 });
    const results = await Promise.allSettled(Array.from({ length: 8 }, () => ask(proud)));
    const refused = results.filter((r) => r.status === "rejected").map((r) => r.reason);
    const answered = results.filter((r) => r.status === "fulfilled").map((r) => r.value);
    assert.ok(answered.length >= 2, "one runs, one waits");
    assert.ok(refused.length >= 1, "the queue has its bound");
    for (const error of refused) {
      assert.ok(error instanceof OpenAI.RateLimitError, `${error}`);
      assert.match(error.headers.get("retry-after"), /^[1-9][0-9]*$/);
    }
    const [text] = answered.map((a) => a.choices[0].message.content);

    // Each asks again no earlier than it was told to, and all get the answer in the end.
    const logs = await Promise.all(Array.from({ length: 4 }, async () => {
      const log = [];
      const patient = new OpenAI({
        baseURL: server.base, apiKey: "x", maxRetries: 20, fetch: recording_fetch(log) });
      assert.equal((await ask(patient)).choices[0].message.content, text);
      return log;
    }));
    assert.ok(logs.some((log) => log.length > 1), "nobody was refused");
    for (const log of logs)
      for (let i = 1; i < log.length; ++i) {
        assert.equal(log[i - 1].status, 429);
        assert.ok(log[i].sent - log[i - 1].at >= 1000 * log[i - 1].retry_after - 20);
      }

    const chat = new ChatOpenAI({
      model, apiKey: "x", maxRetries: 8, temperature: 0, maxTokens: 1500,
      modelKwargs: { ignore_eos: true }, configuration: { baseURL: server.base } });
    const provider = createOpenAICompatible({ name: "vitrine", baseURL: server.base });
    const others = await Promise.all([
      ...[1, 2, 3].map(() => chat.invoke(messages).then((m) => m.content)),
      ...[1, 2, 3].map(() => generateText({
        model: provider(model), messages, temperature: 0, maxOutputTokens: 1500, maxRetries: 8,
        providerOptions: { vitrine: { ignore_eos: true } } }).then((r) => r.text)),
    ]);
    for (const other of others) assert.equal(other, text);
    await server.expect_idle(1000);
  } finally {
    await server.stop();
  }
});
