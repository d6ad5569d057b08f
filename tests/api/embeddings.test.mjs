// Embeddings through the clients people use.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { OpenAIEmbeddings } from "@langchain/openai";
import { cosineSimilarity, embed, embedMany } from "ai";
import OpenAI from "openai";
import { Server } from "./server.mjs";

let server, client, model;
before(async () => {
  server = await Server.start("--sequences", "8");
  client = new OpenAI({ baseURL: server.base, apiKey: "none", maxRetries: 0 });
  model = await server.model_name();
});
after(() => server.stop());

const texts = ["the cat sat on the mat", "Hello world", "caf\u00e9 \u{1F600}", "a"];
const create = (more) => client.embeddings.create({ model, input: texts, ...more });
const plain = async (more) => (await create({ encoding_format: "float", ...more })).data
  .map((one) => one.embedding);
const length = (vector) => Math.hypot(...vector);
// A float has 24 bits.
const same = (a, b) => {
  assert.equal(a.length, b.length);
  a.forEach((x, i) => assert.equal(Math.fround(x), Math.fround(b[i])));
};

test("create: float, and base64, which the client asks for by itself", async () => {
  const floats = await create({ encoding_format: "float" });
  assert.equal(floats.object, "list");
  assert.equal(floats.model, model);
  assert.deepEqual(floats.data.map((one) => one.index), [0, 1, 2, 3]);
  let tokens = 0;
  for (const content of texts) tokens += (await server.json("/tokenize", { content })).count;
  assert.deepEqual(floats.usage, { prompt_tokens: tokens, total_tokens: tokens });
  for (const { embedding } of floats.data) {
    assert.equal(embedding.length, 64);
    assert.ok(Math.abs(length(embedding) - 1) < 1e-5);
  }
  const packed = await create();
  packed.data.forEach((one, i) => same(one.embedding, floats.data[i].embedding));
});

test("one text, ids, lists of ids", async () => {
  const [expected] = await plain({ input: texts[0] });
  const { tokens } = await server.json("/tokenize", { content: texts[0] });
  for (const input of [[texts[0]], tokens, [tokens]]) same((await plain({ input }))[0], expected);
});

test("texts together get the vectors they get alone", async () => {
  const input = Array.from({ length: 300 }, (_, i) => `cat number ${i} of the mat`.repeat(1 + i % 5));
  const together = await plain({ input });
  assert.equal(together.length, 300);
  for (const i of [0, 7, 150, 299]) same((await plain({ input: input[i] }))[0], together[i]);
});

test("pooling and dimensions", async () => {
  const [mean] = await plain({ input: texts[0] });
  const [last] = await plain({ input: texts[0], pooling: "last" });
  assert.ok(cosineSimilarity(mean, last) < 0.999);
  const [short] = await plain({ input: texts[0], dimensions: 16 });
  assert.equal(short.length, 16);
  assert.ok(Math.abs(length(short) - 1) < 1e-5);
  assert.ok(cosineSimilarity(short, mean.slice(0, 16)) > 1 - 1e-6);
});

test("what cannot be is a 400 that names the field", async () => {
  const refused = (param) => (e) => e instanceof OpenAI.BadRequestError && e.param === param;
  await assert.rejects(create({ input: "" }), refused("input"));
  await assert.rejects(create({ input: [] }), refused("input"));
  await assert.rejects(create({ input: ["a", ""] }), refused("input[1]"));
  await assert.rejects(create({ dimensions: 65 }), refused("dimensions"));
  await assert.rejects(create({ input: "cat ".repeat(9000) }), refused("input"));
});

test("a client that goes away", async () => {
  await server.expect_idle(1000);
  const controller = new AbortController();
  const input = Array.from({ length: 2000 }, (_, i) => `${i} ${"the cat sat ".repeat(80)}`);
  const answer = client.embeddings.create({ model, input }, { signal: controller.signal });
  setTimeout(() => controller.abort(), 150);
  await assert.rejects(answer, OpenAI.APIUserAbortError);
  await server.expect_idle(2000);
});

test("ai: embed and embedMany", async () => {
  const provider = createOpenAICompatible({ name: "vitrine", baseURL: server.base });
  const embedding = provider.textEmbeddingModel(model);
  const expected = await plain();
  const one = await embed({ model: embedding, value: texts[0], maxRetries: 0 });
  same(one.embedding, expected[0]);
  assert.ok(one.usage.tokens > 0);
  const many = await embedMany({ model: embedding, values: texts, maxRetries: 0 });
  many.embeddings.forEach((vector, i) => same(vector, expected[i]));
});

test("langchain: embedQuery and embedDocuments", async () => {
  const embeddings = new OpenAIEmbeddings(
    { model, apiKey: "none", maxRetries: 0, configuration: { baseURL: server.base } });
  const expected = await plain();
  same(await embeddings.embedQuery(texts[1]), expected[1]);
  const documents = await embeddings.embedDocuments(texts);
  documents.forEach((vector, i) => same(vector, expected[i]));
});
