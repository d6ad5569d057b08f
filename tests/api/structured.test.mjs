// Answers that keep to a schema, a grammar, a pattern or a choice, from a model that would rather
// not: its weights are random.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { Validator } from "@cfworker/json-schema";
import { generateObject, jsonSchema, streamObject } from "ai";
import OpenAI from "openai";
import { zodResponseFormat } from "openai/helpers/zod";
import { z } from "zod";
import { Server, messages } from "./server.mjs";

let server, client, model;
before(async () => {
  server = await Server.start();
  client = new OpenAI({ baseURL: server.base, apiKey: "none", maxRetries: 0 });
  model = await server.model_name();
});
after(() => server.stop());

const many = Number(process.env.VITRINE_GENERATIONS ?? 120);

// Every text is bounded, so that an answer ends before its tokens do.
const schemas = [
  {
    type: "object",
    properties: {
      name: { type: "string", minLength: 2, maxLength: 10 },
      age: { type: "integer", minimum: 0, maximum: 150 },
      height: { type: "number", exclusiveMinimum: 0.5, maximum: 2.75 },
      tags: { type: "array", items: { enum: ["cat", "mat", "the \"house\"", 7, null] }, minItems: 1, maxItems: 4 },
      pet: { $ref: "#/$defs/pet" },
    },
    required: ["name", "age", "tags", "pet"],
    additionalProperties: false,
    $defs: {
      pet: {
        type: "object",
        properties: { kind: { const: "cat" }, code: { type: "string", pattern: "^[A-Z]{2}-[0-9]{1,4}$" } },
        required: ["kind", "code"],
        additionalProperties: false,
      },
    },
  },
  {
    oneOf: [
      { type: "object", properties: { t: { const: "a" }, v: { type: "integer", multipleOf: 7, minimum: -70, maximum: 700 } },
        required: ["t", "v"], additionalProperties: false },
      { type: "object", properties: { t: { const: "b" }, v: { type: "string", format: "date" } },
        required: ["t", "v"], additionalProperties: false },
      { type: "array", prefixItems: [{ type: "boolean" }, { type: "null" }], items: { type: "string", maxLength: 3 },
        minItems: 2, maxItems: 4 },
    ],
  },
  {
    type: "object",
    properties: { a: { type: "boolean" } },
    patternProperties: { "^n[0-9]$": { type: "integer", minimum: 10, maximum: 99 } },
    propertyNames: { maxLength: 3, pattern: "^[a-z]" },
    additionalProperties: { type: "string", maxLength: 4 },
    maxProperties: 4,
  },
];

const format = (schema) => ({ type: "json_schema", json_schema: { name: "answer", strict: true, schema } });

function check(schema, text) {
  const value = JSON.parse(text);
  const { valid, errors } = new Validator(schema, "2020-12", false).validate(value);
  assert.ok(valid, `${text}: ${JSON.stringify(errors)}`);
  return value;
}

async function answer(body, stream) {
  if (!stream) {
    const whole = await client.chat.completions.create(body);
    return whole.choices.map((c) => [c.message.content, c.finish_reason]);
  }
  const out = Array.from({ length: body.n ?? 1 }, () => ["", null]);
  for await (const chunk of await client.chat.completions.create({ ...body, stream: true }))
    for (const { index, delta, finish_reason } of chunk.choices) {
      out[index][0] += delta.content ?? "";
      out[index][1] ??= finish_reason;
    }
  return out;
}

test("every answer validates, streamed and not, at any temperature", async () => {
  let made = 0;
  const one = async (i) => {
    const schema = schemas[i % schemas.length];
    const body = { model, messages, max_tokens: 400, temperature: (i % 5) / 2, seed: i, n: 1 + (i % 3),
      response_format: format(schema) };
    for (const [text, reason] of await answer(body, i % 2 === 0)) {
      assert.equal(reason, "stop", text);
      check(schema, text);
      ++made;
    }
  };
  for (let i = 0; made < many; i += 8) await Promise.all(Array.from({ length: 8 }, (_, k) => one(i + k)));
});

test("a stream and a whole answer are the same", async () => {
  const body = { model, messages, max_tokens: 300, temperature: 1, seed: 5, response_format: format(schemas[0]) };
  assert.deepEqual(await answer(body, true), await answer(body, false));
});

test("json_object", async () => {
  for (const seed of [1, 2, 3]) {
    const [[text, reason]] = await answer(
      { model, messages, max_tokens: 60, seed, temperature: 1, response_format: { type: "json_object" } }, false);
    assert.equal(text[0], "{");
    if (reason === "stop") assert.equal(typeof JSON.parse(text), "object");
  }
});

test("regex, choice and grammar, on both endpoints", async () => {
  const cases = [
    [{ regex: "(cat|dog)s? [0-9]{2,3}!" }, /^(cat|dog)s? [0-9]{2,3}!$/],
    [{ choice: ["yes", "no", "perhaps"] }, /^(yes|no|perhaps)$/],
    [{ grammar: 'root ::= "[" item ("," item){2} "]"\nitem ::= [a-z]{1,4} | "\\u00e9"' }, /^\[([a-z]{1,4}|é)(,([a-z]{1,4}|é)){2}\]$/],
  ];
  for (const [fields, expected] of cases) {
    for (const temperature of [0, 2]) {
      const completion = await server.json("/v1/completions",
        { prompt: "The cat", max_tokens: 60, temperature, ...fields });
      assert.match(completion.choices[0].text, expected);
      assert.equal(completion.choices[0].finish_reason, "stop");
      const chat = await server.json("/v1/chat/completions", { messages, max_tokens: 60, temperature, ...fields });
      assert.match(chat.choices[0].message.content, expected);
    }
  }
});

test("a stop string ends a constrained answer too", async () => {
  const body = { prompt: "The", max_tokens: 40, seed: 3, temperature: 1, regex: "[a-z]{5} [a-z]{5}" };
  const whole = (await server.json("/v1/completions", body)).choices[0].text;
  const cut = (await server.json("/v1/completions", { ...body, stop: " " })).choices[0];
  assert.equal(cut.text, whole.slice(0, 5));
  assert.equal(cut.finish_reason, "stop");
});

test("what cannot be enforced is a 400 that names it", async () => {
  const cases = [
    [{ grammar: "root ::= " + "(".repeat(60000) }, "grammar", /nested deeper/],
    [{ grammar: "root ::= " + "(".repeat(60000) + '"a"' + ")".repeat(60000) }, "grammar", /nested deeper/],
    [{ grammar: 'root ::= root "a" | "b"' }, "grammar", /"root" is left-recursive/],
    [{ grammar: 'root ::= "a" nowhere' }, "grammar", /"nowhere"/],
    [{ regex: "(".repeat(60000) }, "regex", /nested deeper/],
    [{ regex: "(a|b)*a(a|b){60}" }, "regex", /too large/],
    [{ regex: "a(?=b)" }, "regex", /lookaround/],
    [{ choice: [] }, "choice", /1 to/],
    [{ response_format: format({ $ref: "#" }) }, "response_format.json_schema.schema", /"\$ref"/],
    [{ response_format: format({ $ref: "#/$defs/a", $defs: { a: { $ref: "#/$defs/b" }, b: { $ref: "#/$defs/a" } } }) },
      "response_format.json_schema.schema", /"\$ref"/],
    [{ response_format: format({ type: "array", maxItems: 2 ** 64 }) }, "response_format.json_schema.schema", /"maxItems"/],
    [{ response_format: format({ type: "array", uniqueItems: true }) }, "response_format.json_schema.schema", /"uniqueItems"/],
    [{ response_format: format({ type: "object", properties: { a: { frobnicate: 1 } } }) },
      "response_format.json_schema.schema", /"frobnicate"/],
    [{ response_format: { type: "yaml" } }, "response_format.type", /json_schema/],
    [{ response_format: { type: "json_schema" } }, "response_format.json_schema", /schema/],
    [{ regex: "a", choice: ["b"] }, "choice", /regex/],
  ];
  for (const [fields, param, message] of cases) {
    const refused = await server.post("/v1/chat/completions", { messages, ...fields });
    const { error } = await refused.json();
    assert.equal(refused.status, 400, JSON.stringify(fields).slice(0, 200));
    assert.equal(error.param, param);
    assert.match(error.message, message);
  }
});

test("openai's parse, with zod", async () => {
  const Step = z.object({ title: z.string().max(8), done: z.boolean(), kind: z.enum(["cat", "mat"]) });
  const Plan = z.object({ steps: z.array(Step).max(2), note: z.string().max(6).nullable() });
  const parsed = await client.chat.completions.parse({ model, messages, max_tokens: 400, temperature: 1,
    response_format: zodResponseFormat(Plan, "plan") });
  assert.ok(Plan.safeParse(parsed.choices[0].message.parsed).success);
});

test("ai's generateObject and streamObject", async () => {
  const provider = createOpenAICompatible({ name: "vitrine", baseURL: server.base, supportsStructuredOutputs: true });
  const settings = { model: provider(model), schema: jsonSchema(schemas[0]), prompt: "A cat.", maxOutputTokens: 400,
    maxRetries: 0, temperature: 1 };
  check(schemas[0], JSON.stringify((await generateObject(settings)).object));
  const stream = streamObject(settings);
  let parts = 0;
  for await (const _ of stream.partialObjectStream) ++parts;
  assert.ok(parts > 1);
  check(schemas[0], JSON.stringify(await stream.object));
});
