// The server without arguments: the model that is part of the program.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Server } from "./server.mjs";

test("the built-in model answers a chat", async () => {
  const server = await Server.spawn([]);
  try {
    assert.equal(await server.model_name(), "demo");
    const ask = async (content) => {
      const answer = await server.json("/v1/chat/completions",
        { messages: [{ role: "user", content }], temperature: 0, max_tokens: 400 });
      assert.equal(answer.choices[0].finish_reason, "stop");
      return answer.choices[0].message.content;
    };
    assert.match(await ask("What is the KV cache?"), /keys and values/);
    const story = await ask("Tell me a story about a fox.");
    assert.match(story, /fox/);
    assert.ok(story.length > 300, story);
  } finally {
    await server.stop();
  }
});
