// What is exported can be read by others, and says what the server says: a trace of a request, a recording.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { ask, close, open, slow, with_server } from "./browser.mjs";

// OpenTelemetry's own messages, as its exporter for JavaScript has them.
const { opentelemetry } = createRequire(import.meta.url)("@opentelemetry/otlp-transformer/build/src/generated/root.js");
const ExportRequest = opentelemetry.proto.collector.trace.v1.ExportTraceServiceRequest;

const served = with_server();

async function written(server, label) {
  for (let i = 0; i < 200; ++i) {
    const { requests: [one] } = await server.json(`/api/requests/${label}`);
    if (one.written) return one;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  assert.fail(`${label} is not written`);
}

// Saves by the button; the file's text.
async function saved(page, button) {
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: button }).click()]);
  return { name: download.suggestedFilename(), text: readFileSync(await download.path(), "utf8") };
}

// Chrome's rules: sorted, and on each track every slice is within the one that is open, or after it. Times of
// the trace are microseconds; those in `args` are exact.
function nested(trace) {
  const tracks = new Map();
  let last = -Infinity, depth = 0;
  for (const event of trace.traceEvents) {
    assert.ok(["X", "C", "M"].includes(event.ph), JSON.stringify(event));
    if (event.ph === "M") continue;
    assert.ok(event.ts >= last, `${event.ts} after ${last}`);
    last = event.ts;
    if (event.ph !== "X") continue;
    const key = `${event.pid}/${event.tid}`, open = tracks.get(key) ?? [];
    const from = event.args.start_ns, to = from + event.args.ns;
    while (open.length && open.at(-1) <= from) open.pop();
    assert.ok(open.length === 0 || to <= open.at(-1), `${event.name} at ${from} sticks out`);
    open.push(to);
    depth = Math.max(depth, open.length);
    tracks.set(key, open);
  }
  return depth;
}

served("a request saved for Perfetto is its life", async (server) => {
  const page = await open(server, { acceptDownloads: true });
  const label = await ask(page, "Why is the sky blue?");
  const account = await written(server, label);
  await page.evaluate((to) => (location.hash = `#/request/${to}`), label);
  const file = await saved(page, "Save for Perfetto");
  assert.equal(file.name, `${label}-perfetto.json`);
  await page.getByText(`Saved ${file.name}`).waitFor();
  const trace = JSON.parse(file.text);
  assert.equal(nested(trace), 3, "the request, its parts, their steps");
  const slices = trace.traceEvents.filter((e) => e.ph === "X");
  const [whole] = slices.filter((e) => e.name === "request");
  const { life, stamps } = account;
  assert.equal(whole.args.start_ns, stamps.received);
  assert.equal(whole.args.ns, stamps.last_write - stamps.received);
  const kinds = new Set(life.map(([kind]) => kind)), of = (name) => slices.filter((e) => e.name === name);
  for (const kind of kinds)
    assert.deepEqual(of(kind).map((e) => [e.args.start_ns, e.args.ns]), life.filter(([k]) => k === kind).map(([, start, ns]) => [start, ns]), kind);
  assert.equal(slices.filter((e) => kinds.has(e.name)).reduce((sum, e) => sum + e.args.ns, 0), whole.args.ns, "they sum to it");
  assert.equal(slices.filter((e) => /^step \d+$/.test(e.name)).length, account.records.length);
  await close(page);
});

// OTLP/JSON is the JSON of these messages but for ids, which are hexadecimal. What the schema does not know is lost on the
// way through its messages, and a value of another type changes.
const with_ids = (span, read) => ({ ...span, ...Object.fromEntries(["traceId", "spanId", "parentSpanId"].filter((id) => span[id] !== undefined).map((id) => [id, read(span[id])])) });
const with_spans = (file, read) => ({ ...file, resourceSpans: file.resourceSpans.map((r) => ({ ...r, scopeSpans: r.scopeSpans.map((s) => ({ ...s, spans: s.spans.map((span) => with_ids(span, read)) })) })) });
function through_schema(file) {
  const message = ExportRequest.fromObject(with_spans(file, (hex) => Buffer.from(hex, "hex")));
  assert.equal(ExportRequest.verify(message), null);
  const sent = ExportRequest.decode(ExportRequest.encode(message).finish());
  return with_spans(ExportRequest.toObject(sent, { longs: String }), (bytes) => Buffer.from(bytes).toString("hex"));
}

served("a request saved as OTLP has one root, and every span a parent", async (server) => {
  const trace = "4bf92f3577b34da6a3ce929d0e0e4736", caller = "00f067aa0ba902b7";
  await (await fetch(`${server.url}/v1/completions`, { method: "POST", headers: { "x-request-id": "traced", traceparent: `00-${trace}-${caller}-01` },
    body: JSON.stringify({ prompt: "Once upon a time", max_tokens: 12, n: 2, ignore_eos: true, seed: 1, vitrine: { record: true } }) })).json();
  await written(server, "traced");
  const page = await open(server, { path: "/#/request/traced", acceptDownloads: true });
  const file = await saved(page, "Save for OpenTelemetry");
  const text = JSON.parse(file.text);
  assert.deepEqual(through_schema(text), text, "all of it is in OpenTelemetry's schema");
  assert.notDeepEqual(through_schema({ ...text, another: 1 }), { ...text, another: 1 }, "and what is not would be noticed");
  const spans = text.resourceSpans.flatMap((r) => r.scopeSpans).flatMap((s) => s.spans);
  const ids = new Set(spans.map((s) => s.spanId));
  assert.equal(ids.size, spans.length);
  const roots = spans.filter((s) => s.parentSpanId === caller);
  assert.equal(roots.length, 2, "a span for each choice, under the caller's");
  const { requests } = await server.json("/api/requests/traced");
  for (const span of spans) {
    assert.equal(span.traceId, trace);
    assert.match(span.spanId, /^[0-9a-f]{16}$/);
    assert.ok(BigInt(span.endTimeUnixNano) >= BigInt(span.startTimeUnixNano));
    if (!roots.includes(span)) assert.ok(ids.has(span.parentSpanId), `${span.name} has a parent`);
  }
  roots.forEach((root, i) => {
    const parts = spans.filter((s) => s.parentSpanId === root.spanId), ns = (s) => BigInt(s.endTimeUnixNano) - BigInt(s.startTimeUnixNano);
    assert.deepEqual(parts.map((s) => [s.name, Number(ns(s))]), requests[i].life.map(([kind, , length]) => [kind, length]));
    assert.equal(parts.reduce((sum, s) => sum + ns(s), 0n), ns(root));
  });
  await close(page);
});

// The engine's steps, where the server writes them as a file.
served("steps are saved as a trace and as a recording that the page plays", async (server, t) => {
  if ((await fetch(`${server.url}/api/steps/export?format=perfetto`)).status !== 200) return t.skip("the server has no export of steps");
  const trace = await server.json("/api/steps/export?format=perfetto");
  assert.ok(nested(trace) >= 1);
  const recording = await fetch(`${server.url}/api/steps/export?format=vtr`);
  assert.equal(recording.status, 200);
  const lines = (await recording.text()).trim().split("\n").map((line) => JSON.parse(line));
  assert.equal(lines[0].event, "hello");
  let seq = -1;
  for (const { seq: next } of lines) {
    if (next === undefined) continue;
    assert.ok(next > seq, `${next} after ${seq}`);
    seq = next;
  }
  assert.ok(lines.some((line) => line.event === "step"));
});
