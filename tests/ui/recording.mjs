// A recording of an engine that never ran: `sequences` places that are always taken, prompts that share their
// first pages, steps of `ms`. Lines as `GET /api/steps/export?format=vtr` has them, and what the last one must
// lead to.
export function recording({ sequences = 256, steps = 600, ms = 1000 / 60, page_size = 16, output = 120 } = {}) {
  const lines = [], total = sequences * 16, free = Array.from({ length: total }, (_, i) => total - 1 - i);
  const holders = new Array(total).fill(0), named = new Set(), running = new Map();
  let seq = 0, next_request = 1, now = 1e9, random = 1;
  const chance = () => (random = (random * 48271) % 0x7fffffff) / 0x7fffffff;
  const tell = (event, fields) => lines.push(JSON.stringify({ event, seq: ++seq, ...fields }));
  const pages_json = () => ({
    groups: [{ window: 0, page_size, pages: holders.map((n, page) => (n > 0 ? "u" : named.has(page) ? "c" : ".")).join(""), holders }],
    tables: [...running.values()].map((r) => ({ id: r.id, slot: r.slot, group: 0, length: r.computed, pages: r.pages })),
  });
  lines.push(JSON.stringify({ event: "hello", schema: 1, epoch: "recorded", now_ns: now, now_unix_ns: 0, model: "none", viewer: { name: "", role: "operator" } }));
  lines.push(JSON.stringify({ event: "snapshot", seq: 0, epoch: "recorded", now_ns: now, policy: "continuous", max_sequences: sequences,
    step_tokens: 2048, max_queue: 512, num_running: 0, num_waiting: 0, running: [], waiting: [], step: 0, blocked: null, pages: pages_json() }));
  const snapshots = [];  // after every tenth step, as the server would tell it
  const snapshot = (n) => snapshots.push({ n, seq, epoch: "recorded", now_ns: now, policy: "continuous", max_sequences: sequences, step_tokens: 2048, max_queue: 512,
    num_running: running.size, num_waiting: 0, waiting: [], step: n + 1, blocked: null, pages: structuredClone(pages_json()),
    running: [...running.values()].map((r) => ({ id: r.id, label: `made-${r.id}`, tenant: "", choice: 0, state: "decode", slot: r.slot, prompt_tokens: r.prompt,
      completion_tokens: 1, cached_tokens: 0, computed: r.computed, length: r.computed, preemptions: 0 })) });
  const prefix = [];  // pages that every prompt begins with, once the first has computed them
  const begin = (slot, ops, admit) => {
    const r = { id: next_request++, slot, prompt: 40 + Math.floor(chance() * 60), left: Math.floor(output * (0.3 + chance())), computed: 0, pages: [] };
    tell("arrive", { at_ns: now, req: r.id, label: `made-${r.id}`, tenant: "", choice: 0, parent: 0, prompt_tokens: r.prompt, priority: 0, stamps: {} });
    for (const page of prefix) {
      r.pages.push(page);
      ops.push(["adopt", 0, page, r.id, r.pages.length - 1, ++holders[page]]);
    }
    r.computed = r.pages.length * page_size;
    admit.push([r.id, slot, r.computed]);
    running.set(slot, r);
  };
  const grow = (r, to, ops) => {
    while (r.pages.length * page_size < to) {
      const page = free.pop();
      holders[page] = 1;
      ops.push(["take", 0, page, r.id, r.pages.length, 1]);
      r.pages.push(page);
    }
  };
  for (let n = 0; n < steps; ++n) {
    const ops = [], admit = [], entries = [], later = [], ended = [];
    // A few new ones a step, so that the batch fills in the first steps.
    for (let slot = 0, begun = 0; slot < sequences && begun < 8; ++slot)
      if (!running.has(slot)) (begin(slot, ops, admit), ++begun);
    let prefill = 0, decode = 0;
    for (const r of running.values()) {
      const rows = r.computed < r.prompt ? r.prompt - r.computed : 1, is_prefill = r.computed < r.prompt;
      grow(r, r.computed + rows, ops);
      entries.push([r.id, r.slot, is_prefill ? "prefill" : "decode", r.computed, rows, true, rows * 3e7, r.computed * 512, rows * 512, Math.floor((ms * 1e6) / running.size), 0, rows, 1]);
      is_prefill ? (prefill += rows) : ++decode;
      r.computed += rows;
      if (prefix.length === 0 && r.computed >= 2 * page_size)
        for (const [index, page] of r.pages.slice(0, 2).entries()) (prefix.push(page), named.add(page), later.push(["name", 0, page, r.id, index, holders[page]]));
      if (--r.left <= 0) ended.push(r);
    }
    for (const r of ended) {
      for (let index = r.pages.length - 1; index >= 0; --index) {
        const page = r.pages[index];
        later.push(["release", 0, page, r.id, index, --holders[page]]);
        if (holders[page] === 0 && !named.has(page)) free.push(page);
      }
      running.delete(r.slot);
    }
    tell("plan", { at_ns: now, n, admit, preempt: [], pages: ops, lost: false, blocked: null });
    tell("step", { n, start_ns: now, wall_from_ns: now, wall_ns: ms * 1e6, plan_ns: ms * 3e4, forward_ns: ms * 8e5, sample_ns: ms * 1e5, commit_ns: ms * 2e4, wait_ns: 0,
      device_ns: 0, device_idle_ns: 0, cache_ns: 0, rows: { prefill, decode, padding: 0, head: entries.length }, flops: (prefill + decode) * 3e7, weight_bytes: 1.4e7,
      kv_read_bytes: 1e6, kv_write_bytes: 1e5, running: entries.length, waiting: 0, preempted: 0, padding_share_ns: 0, entries, pages: later, lost: false });
    now += ms * 1e6;
    for (const r of ended) tell("end", { at_ns: now, req: r.id, reason: "length", account: { completion_tokens: 1 } });
    if (n % 10 === 9) snapshot(n);
  }
  return { lines, snapshots, pages: pages_json(), running: [...running.values()] };
}
