// What the engine tells, field by field: unit, source, meaning. Printed by `trace_schema ts` from
// src/trace/events.def; a test compares them.

// a sequence was handed to the scheduler; one for each choice of a request.
export const arrive = {
  "at_ns": ["ns", "measured", "when it was submitted"],
  "req": ["plain", "measured", "number of the sequence"],
  "label": ["word", "measured", "the caller's name for the request"],
  "tenant": ["word", "measured", "name of the API key"],
  "choice": ["plain", "measured", "which of the request's choices"],
  "parent": ["plain", "measured", "sequence that it goes on from; 0: none"],
  "prompt_tokens": ["tokens", "measured", "tokens of the prompt"],
  "begun_tokens": ["tokens", "measured", "of these, output that was there from the start"],
  "priority": ["plain", "measured", "lower goes first"],
  "stamps.received": ["ns", "measured", "first byte of the request; 0 for this and the next: not known"],
  "stamps.body": ["ns", "measured", "all of it was there"],
  "stamps.parsed": ["ns", "measured", "its fields were read"],
  "stamps.templated": ["ns", "measured", "the conversation was text"],
  "stamps.tokenized": ["ns", "measured", "the text was tokens"],
  "stamps.compiled": ["ns", "measured", "its constraint was compiled"],
  "stamps.submitted": ["ns", "measured", "handed to the engine"],
} as const;

// a step was planned and something changed: who has a place, pages, why the first waits.
export const plan = {
  "at_ns": ["ns", "measured", "when"],
  "n": ["plain", "measured", "number of the step to come"],
  "lost": ["word", "measured", "there were changes that are not told"],
  "blocked.reason": ["word", "measured", "why the first in the queue was not admitted: none, seats, pages, policy"],
  "blocked.id": ["plain", "measured", "the first in the queue"],
  "blocked.needed": ["pages", "measured", "pages that it needs"],
  "blocked.available": ["pages", "measured", "pages that are free or may be evicted"],
  "preempt": {
    "req": ["plain", "measured", "sequence"],
    "by": ["plain", "measured", "sequence that took its place or its pages"],
    "pages": ["pages", "measured", "pages that it gave back"],
  },
  "admit": {
    "req": ["plain", "measured", "sequence"],
    "slot": ["plain", "measured", "its place in the batch"],
    "cached_tokens": ["tokens", "measured", "tokens that need not be computed"],
    "computed": ["tokens", "measured", "of these, those with K and V now: none yet where it shares a prompt that is being computed"],
  },
  "pages": {
    "op": ["word", "measured", "take, adopt, share, copy, name, release, evict"],
    "group": ["plain", "measured", "cache group"],
    "page": ["plain", "measured", "number of the page in its pool"],
    "req": ["plain", "measured", "sequence whose block table changed; 0: none"],
    "index": ["plain", "measured", "place in that block table"],
    "holders": ["count", "measured", "block tables that hold the page afterwards"],
  },
} as const;

// a step was committed.
export const step = {
  "n": ["plain", "measured", "number of the step"],
  "start_ns": ["ns", "measured", "when planning began"],
  "wall_from_ns": ["ns", "measured", "where wall_ns begins"],
  "wall_ns": ["ns", "measured", "since the end of the step before, or since work arrived; these intervals do not overlap"],
  "plan_ns": ["ns", "measured", "choosing tokens, pages and rows"],
  "forward_ns": ["ns", "measured", "the model's layers; where steps are queued, queueing them"],
  "sample_ns": ["ns", "measured", "logits and the draw"],
  "commit_ns": ["ns", "measured", "appending tokens and freeing pages"],
  "wait_ns": ["ns", "measured", "within sample: waiting for a device"],
  "device_ns": ["ns", "measured", "by the device's clock; 0: it has none"],
  "device_idle_ns": ["ns", "measured", "before it, by the device's clock"],
  "cache_ns": ["ns", "measured", "within plan and commit: hashing and looking up prefixes"],
  "padding_share_ns": ["ns", "computed", "of wall_ns, what rows of padding took; this and the entries' shares sum to it"],
  "flops_per_byte": ["FLOP/B", "computed", "ratio of the machine's peaks that shares were made with"],
  "rows.prefill": ["count", "measured", "rows of prompts"],
  "rows.decode": ["count", "measured", "rows of new tokens"],
  "rows.padding": ["count", "measured", "padding rows, which belong to no sequence"],
  "rows.head": ["count", "measured", "rows whose logits were computed"],
  "spec.drafted": ["tokens", "measured", "guesses that were computed"],
  "spec.accepted": ["tokens", "measured", "of these, those that were drawn"],
  "spec.draft_ns": ["ns", "measured", "within plan: guessing"],
  "spec.lost_ns": ["ns", "computed", "against what its tokens cost without guesses; below 0: won"],
  "flops": ["flop", "computed", "counted from the shapes of what ran"],
  "weight_bytes": ["bytes", "computed", "weights read, once a step"],
  "kv_read_bytes": ["bytes", "computed", "K and V read, counted from shapes"],
  "kv_write_bytes": ["bytes", "computed", "K and V written, counted from shapes"],
  "running": ["count", "measured", "sequences with a place, after planning"],
  "waiting": ["count", "measured", "sequences in the queue, after planning"],
  "preempted": ["count", "measured", "sequences that lost their place before it"],
  "pages_used": ["pages", "measured", "held by sequences, over all groups"],
  "pages_cached": ["pages", "measured", "held by no sequence, kept for their tokens"],
  "pages_copied": ["pages", "measured", "copied before they were written to"],
  "blocked.reason": ["word", "measured", "as in plan"],
  "blocked.id": ["plain", "measured", "as in plan"],
  "blocked.needed": ["pages", "measured", "as in plan"],
  "blocked.available": ["pages", "measured", "as in plan"],
  "lost": ["word", "measured", "there were changes of pages that are not told"],
  "entries": {
    "req": ["plain", "measured", "sequence"],
    "slot": ["plain", "measured", "its place in the batch"],
    "phase": ["word", "measured", "prefill or decode"],
    "first": ["plain", "measured", "position of its first row"],
    "rows": ["count", "measured", "rows; 0: a choice that draws from the row of another"],
    "sampled": ["word", "measured", "a token was to be drawn"],
    "flops": ["flop", "computed", "of its rows, counted from shapes"],
    "kv_read_bytes": ["bytes", "computed", "K and V that its rows read, counted from shapes"],
    "kv_write_bytes": ["bytes", "computed", "K and V that its rows wrote, counted from shapes"],
    "share_ns": ["ns", "computed", "of the step's wall_ns, by the rule of engine/shares.h"],
    "again": ["count", "measured", "of its rows, computed before and dropped by a preemption"],
    "kept": ["count", "measured", "of its rows, those whose K and V stay"],
    "drawn": ["tokens", "measured", "tokens added to its output"],
  },
  "ops": {
    "op": ["word", "measured", "operation of the backend"],
    "calls": ["count", "measured", "calls"],
    "seconds": ["s", "measured", "of all of them, by the host's clock"],
  },
  "pages": {
    "op": ["word", "measured", "take, adopt, share, copy, name, release, evict"],
    "group": ["plain", "measured", "cache group"],
    "page": ["plain", "measured", "number of the page in its pool"],
    "req": ["plain", "measured", "sequence whose block table changed; 0: none"],
    "index": ["plain", "measured", "place in that block table"],
    "holders": ["count", "measured", "block tables that hold the page afterwards"],
  },
} as const;

// a sequence ended; the pages that it held are given back by the plan or the step told with it, or once its last step is through.
export const end = {
  "at_ns": ["ns", "measured", "when"],
  "req": ["plain", "measured", "sequence"],
  "reason": ["word", "measured", "stop, length, cancelled, timeout, error"],
  "account.prompt_tokens": ["tokens", "measured", "tokens of the prompt"],
  "account.completion_tokens": ["tokens", "measured", "tokens drawn for the answer"],
  "account.cached_tokens": ["tokens", "measured", "of the prompt, from the cache"],
  "account.recomputed_tokens": ["tokens", "measured", "computed again after preemptions"],
  "account.preemptions": ["count", "measured", "how often it lost its place"],
  "account.steps": ["steps", "measured", "steps in which it had rows"],
} as const;

// the last bytes of an answer were handed to the system.
export const written = {
  "at_ns": ["ns", "measured", "when"],
  "req": ["plain", "measured", "sequence of the first choice"],
  "first_write_ns": ["ns", "measured", "when the first bytes were"],
  "last_write_ns": ["ns", "measured", "when the last bytes were"],
  "bytes_out": ["bytes", "measured", "bytes of the answer with its head"],
} as const;
