// `vitrine load` against the real server.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Server, model, vitrine } from "./server.mjs";

const small = ["--requests", "24", "--prompt-mean", "20", "--output-mean", "12", "--json"];

test("closed and open loop", async () => {
  const server = await Server.start();
  try {
    for (const loop of [["--concurrency", "6"], ["--rate", "200"]]) {
      const { code, out, err } = await vitrine("load", "--url", server.url, ...loop, ...small,
        "--warmup", "2", "--shared-prefix", "0.5");
      assert.equal(code, 0, err);
      const { result } = JSON.parse(out);
      assert.equal(result.ok, 24, out);
      assert.equal(result.short_answers, 0);
      assert.equal(result.prompt_tokens, 24 * 20);
      assert.ok(result.output_tok_s > 0);
      for (const name of ["ttft_ms", "tpot_ms", "e2e_ms"]) {
        assert.ok(result[name].p50 > 0, name);
        assert.ok(result[name].p50 <= result[name].p99, name);
      }
    }
    await server.expect_idle(1000);
  } finally {
    await server.stop();
  }
});

test("policies side by side", async () => {
  const { code, out, err } = await vitrine("load", "--serve", model, "--repeat", "1",
    "--concurrency", "4", ...small, "--", "--sequences", "4");
  assert.equal(code, 0, err);
  const { policies, ratio_of_first_to } = JSON.parse(out);
  assert.deepEqual(policies.map((p) => p.name), ["continuous", "static"]);
  for (const policy of policies) assert.equal(policy.median["requests ok"], 24);
  const [one, other] = policies.map((p) => p.runs[0].output_tokens);
  assert.equal(one, other);
  assert.ok(ratio_of_first_to.static["output tok/s"] > 0);
});

test("overload is 200 and 429 only", async () => {
  const server = await Server.start("--sequences", "2", "--max-queue", "4");
  try {
    const { code, out } = await vitrine("load", "--url", server.url, "--rate", "2000",
      "--requests", "600", "--prompt-mean", "20", "--output-mean", "200", "--output-cv", "0", "--json");
    assert.equal(code, 0);
    const { result } = JSON.parse(out);
    assert.equal(result.ok + result.rejected, 600, out);
    assert.ok(result.rejected > 0, "it was no overload");
    await server.expect_idle(1000);
  } finally {
    await server.stop();
  }
});
