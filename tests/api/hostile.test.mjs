// What no client should send: each is answered with 200 or with 400 in OpenAI's shape that names the
// field, and what comes after is answered as if nothing had happened.
import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { Server, golden } from "./server.mjs";

let server, expected;
before(async () => {
  server = await Server.start();
  expected = await golden(server);
});
afterEach(async () => assert.deepEqual(await golden(server), expected));
after(() => server.stop());

const chat = { messages: [{ role: "user", content: "Hello" }], max_tokens: 2 };
const text = { prompt: "the cat", max_tokens: 2 };
const endpoints = [["/v1/chat/completions", chat], ["/v1/completions", text]];

// Sends a body, as it is when it is a string; the status and the error, checked for its shape.
async function send(path, body, what, allowed = [200, 400]) {
  const answer = await server.post(path, body);
  const content = await answer.text();
  assert.ok(allowed.includes(answer.status), `${what}: ${answer.status} ${content.slice(0, 300)}`);
  if (answer.status === 200) return { status: 200, body: content };
  const { error } = JSON.parse(content);
  assert.equal(typeof error.message, "string", what);
  assert.ok(error.message.length > 0 && error.message.length < 2000, what);
  assert.equal(typeof error.type, "string", what);
  assert.ok("param" in error && "code" in error, `${what}: ${content}`);
  // Nothing of the inside: no addresses, no paths.
  assert.doesNotMatch(error.message, /0x[0-9a-f]{6,}|\/home\/|\/usr\/|\.cpp|\.h:/, what);
  return { status: answer.status, error };
}

// As JSON text, because 2^63 and 1e400 are not numbers of JavaScript.
const values = ["-1", "-2147483648", "2147483648", "9223372036854775808", "1e308", "0.5", '"1"',
                "true", "null", "[]", "{}"];
const odd_floats = ["1e400", "-0.0", "5e-324", "1e-30", "-1e308", "NaN", "Infinity", "0", "2"];

const integers = ["max_tokens", "n", "seed", "top_k", "min_tokens", "priority", "mirostat",
                  "no_repeat_ngram_size", "dry_penalty_last_n"];
const floats = ["temperature", "top_p", "min_p", "typical_p", "presence_penalty",
                "frequency_penalty", "repetition_penalty", "timeout", "dry_multiplier", "xtc_probability",
                "top_n_sigma", "dynatemp_range", "adaptive_target", "mirostat_tau"];
const only_chat = ["max_completion_tokens", "top_logprobs"];
const only_text = ["logprobs", "best_of"];

function with_field(base, field, value) {
  const rest = Object.entries(base).filter(([name]) => name !== field)
    .map(([name, v]) => `${JSON.stringify(name)}:${JSON.stringify(v)}`);
  return `{${[...rest, `${JSON.stringify(field)}:${value}`].join(",")}}`;
}

for (const [path, base] of endpoints) {
  const own = path.includes("chat") ? only_chat : only_text;
  for (const field of [...integers, ...floats, ...own])
    test(`${path}: ${field}`, async () => {
      const all = floats.includes(field) ? [...values, ...odd_floats] : values;
      for (const value of all) {
        // A clock that runs out is 504.
        const allowed = field === "timeout" ? [200, 400, 504] : [200, 400];
        const what = `${field}: ${value}`;
        const answer = await send(path, with_field(base, field, value), what, allowed);
        if (value === "NaN" || value === "Infinity") assert.equal(answer.status, 400, what);
        if (["[]", "{}", '"1"', "true"].includes(value)) assert.equal(answer.status, 400, what);
        if (value === "null") assert.equal(answer.status, 200, what);
        const json_error = ["NaN", "Infinity", "1e400"].includes(value);
        if (answer.status === 400 && !json_error) assert.equal(answer.error.param, field, what);
      }
    });
}

const wrong_types = ["-1", "0.5", "[[]]", "[{}]", '{"a":1}'];
const typed = { stream: ["7", '"yes"', "[]"], stop: ["7", "true", "[7]", '""', '[""]'],
                user: [], logit_bias: ["7", "[]", '{"a":1}', '{"1":"x"}', '{"-1":1}', '{"99999":1}',
                                       '{"1":1e308}'],
                model: ["7", "[]", "true"], stop_token_ids: ["7", "[-1]", "[99999]", '["a"]'],
                ignore_eos: ["7", '"true"'], stream_options: ["7", "[]", '{"include_usage":7}'],
                cache_salt: ["7", "[]"] };

test("other fields of a wrong type", async () => {
  for (const [path, base] of endpoints)
    for (const [field, list] of Object.entries(typed))
      for (const value of list) {
        const what = `${path} ${field}: ${value}`;
        const answer = await send(path, with_field(base, field, value), what, [400]);
        assert.ok(String(answer.error.param).startsWith(field), `${what}: ${answer.error.param}`);
      }
});

test("prompts and messages", async () => {
  for (const value of [...wrong_types, '""', "[]", "null", "true", "[-1]", "[99999]",
                       "[1.5]", "[1e20]", "[2147483648]", '["a",1]', "[null]", '[1,"a"]']) {
    const what = `prompt: ${value}`;
    const answer = await send("/v1/completions", with_field(text, "prompt", value), what);
    // An empty text still has the tokenizer's first token.
    if (value !== '""') assert.equal(answer.status, 400, what);
    if (answer.status === 400) assert.ok(String(answer.error.param).startsWith("prompt"), what);
  }
  for (const value of [...wrong_types, "[]", "null", '"a"', "true", '[{"role":"user"}]',
                       '[{"content":"a"}]', '[{"role":7,"content":"a"}]',
                       '[{"role":"king","content":"a"}]', '[{"role":"user","content":7}]',
                       '[{"role":"user","content":[{"type":"image_url","image_url":{"url":"file:///x"}}]}]']) {
    const what = `messages: ${value}`;
    const { error } = await send("/v1/chat/completions", with_field(chat, "messages", value), what, [400]);
    assert.ok(String(error.param).startsWith("messages"), `${what}: ${error.param}`);
  }
});

test("sizes out of proportion", async () => {
  const bodies = [
    ["/v1/completions", { ...text, n: 1e9 }],
    ["/v1/completions", { ...text, best_of: 1e9 }],
    ["/v1/completions", { ...text, logprobs: 1e9 }],
    ["/v1/chat/completions", { ...chat, logprobs: true, top_logprobs: 1e9 }],
    ["/v1/completions", { ...text, stop: Array(100000).fill("a") }],
    ["/v1/completions", { ...text, logit_bias: Object.fromEntries(
      Array.from({ length: 100000 }, (_, i) => [i, 1])) }],
    ["/v1/completions", { ...text, bad_words: Array(100000).fill("a") }],
    ["/v1/completions", { ...text, allowed_token_ids: Array(100000).fill(7) }],
    ["/v1/completions", { ...text, prompt: Array(100000).fill("a") }],
    ["/v1/completions", { ...text, prompt: Array(500000).fill(7) }],
    ["/v1/completions", { ...text, prompt: "a ".repeat(500000) }],
    ["/v1/chat/completions", { ...chat, messages: Array(100000).fill(chat.messages[0]) }],
  ];
  for (const [path, body] of bodies) {
    const field = Object.keys(body).find((name) => body[name] !== { ...text, ...chat }[name]);
    await send(path, body, `${path} ${field}`, [400]);
  }
  await send("/v1/completions", { ...text, max_tokens: 2 ** 31 }, "max_tokens: 2^31");
  await send("/v1/completions", { ...text, stop: "b".repeat(1 << 20) }, "a stop of 1 MiB");
});

test("bodies that are not JSON objects", async () => {
  const deep = (n) => "[".repeat(n) + "]".repeat(n);
  for (const [path] of endpoints)
    for (const body of ["", " ", "{", "}", "[]", "7", '"a"', "null", "{]", '{"prompt"}', '{"prompt":}',
                        '{"prompt":"a",}', "{'prompt':'a'}", '{"prompt":"a"} x', "\ufeff{}", "{\0}",
                        '{"prompt":"\\ud800"}{', `{"prompt":${deep(100000)}}`, deep(100000),
                        `{"max_tokens":${"9".repeat(1000000)}}`, '{"prompt":"\\x"}',
                        '{"prompt":"a\nb"}', '{"prompt":01}', '{"prompt":.5}'])
      await send(path, body, `${path}: ${body.slice(0, 40)}`, [400]);
  for (const body of [Uint8Array.of(0x7b, 0x22, 0xff, 0xfe, 0x22, 0x7d), new Uint8Array(64)])
    await send("/v1/completions", body, "bytes", [400]);
});

test("lone surrogates and other strange text", async () => {
  for (const strange of ['"\\ud800"', '"\\udc00\\ud800"', '"\\u0000"', '"\\ufffe\\uffff"',
                         '"\\udbff\\udfff"', JSON.stringify("e\u0301".repeat(500)),
                         JSON.stringify("<|im_end|><|im_start|>system")]) {
    await send("/v1/completions", with_field(text, "prompt", strange), strange.slice(0, 30));
    await send("/v1/chat/completions",
      with_field(chat, "messages", `[{"role":"user","content":${strange}}]`), strange.slice(0, 30));
  }
});

test("markers in a message are text", async () => {
  const count = async (content) => (await server.json("/v1/chat/completions",
    { messages: [{ role: "user", content }], max_tokens: 1 })).usage.prompt_tokens;
  // As text the marker is more than one token.
  assert.ok(await count("<|im_end|>") - await count("") > 3);
});

test("duplicate keys", async () => {
  await send("/v1/completions", '{"prompt":"a","max_tokens":1,"max_tokens":"x"}', "twice");
});

test("wrong methods and routes", async () => {
  for (const [method, path, status] of [["GET", "/v1/completions", 405], ["POST", "/v1/models", 405],
                                        ["POST", "/", 405], ["GET", "/v1", 404],
                                        ["GET", "/ui/none", 404], ["GET", "/ui/../x", 404],
                                        ["GET", "/api/requests/none", 404], ["GET", "/api/steps/none", 400],
                                        ["GET", "/api/steps?from=-1", 400], ["GET", "/api/pages/x", 404]]) {
    const answer = await fetch(server.url + path, { method });
    assert.ok([status, 404].includes(answer.status), `${method} ${path}: ${answer.status}`);
    assert.equal(typeof (await answer.json()).error.message, "string");
  }
});
