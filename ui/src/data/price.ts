// What a request cost, by kind of work: sums over the entries of its steps, which are the account's.
import {get, type Account} from './api';
import {E, H, kEntry, packStep, type PackedStep} from './events';

export interface Work {
  rows: number;
  ns: number;
  flops: number;
  weights: number; // bytes
  kvRead: number;
  kvWrite: number;
}
export type Computed = 'input' | 'output' | 'wasted';
export type Kind = Computed | 'cached';
export interface Works {
  steps: number;
  of: Record<Computed, Work>;
}
const none = (): Work => ({rows: 0, ns: 0, flops: 0, weights: 0, kvRead: 0, kvWrite: 0});

// Of one sequence. What was computed again after a preemption is wasted, by its share of the rows.
export function workOf(steps: readonly PackedStep[], id: number): Works {
  const out: Works = {steps: 0, of: {input: none(), output: none(), wasted: none()}};
  for (const {head, entries} of steps) {
    for (let at = 0; at < entries.length; at += kEntry) {
      if (entries[at + E.req] !== id) continue;
      ++out.steps;
      const rows = entries[at + E.rows]!, again = entries[at + E.again]!, all = head[H.prefill]! + head[H.decode]!;
      const add = (to: Work, n: number) => {
        const part = rows > 0 ? n / rows : 0;
        to.rows += n;
        to.flops += entries[at + E.flops]! * part;
        to.weights += all > 0 ? (head[H.weight]! * n) / all : 0;
        to.kvRead += entries[at + E.kvRead]! * part;
        to.kvWrite += entries[at + E.kvWrite]! * part;
      };
      const share = entries[at + E.share]!, wasted = rows > 0 ? Math.trunc((share * again) / rows) : 0;
      const to = out.of[entries[at + E.decode] ? 'output' : 'input'];
      add(to, rows - again);
      to.ns += share - wasted;
      add(out.of.wasted, again);
      out.of.wasted.ns += wasted;
    }
  }
  return out;
}
export const totalOf = (w: Works): Work => {
  const all = none();
  for (const part of Object.values(w.of)) for (const name of Object.keys(all) as (keyof Work)[]) all[name] += part[name];
  return all;
};

// The steps of a request, as far as they are kept. For operators.
export async function stepsOf(a: Account, signal?: AbortSignal): Promise<{steps: PackedStep[]; copied: number}> {
  const first = a.records?.[0]?.step, last = a.records?.at(-1)?.step;
  const steps: PackedStep[] = [];
  let copied = 0;
  for (let from = first; from !== undefined && last !== undefined && from <= last; ) {
    const answer: {next: number; steps: Record<string, unknown>[]} = await get(`/api/steps?from=${from}&limit=256`, signal);
    for (const json of answer.steps) {
      const step = packStep(json);
      if (step.head[H.n]! > last) break;
      steps.push(step);
      copied += (json['pages'] as {copied?: number} | undefined)?.copied ?? 0;
    }
    if (answer.steps.length === 0 || answer.next <= from) break;
    from = answer.next;
  }
  return {steps, copied};
}

// ---- Time by kind.

export interface Times {
  ns: Record<Kind, number>; // cached: looking up; NaN where that is not told
  divided: boolean; // steps are divided among their sequences; false: whole steps, company included
}
export function timesOf(a: Account): Times {
  if (a.shares) return {ns: {input: a.shares.input_ns, cached: a.shares.cached_ns, output: a.shares.output_ns, wasted: a.shares.wasted_ns}, divided: true};
  return {ns: {input: a.prefill_ms * 1e6, cached: NaN, output: a.decode_ms * 1e6, wasted: 0}, divided: false};
}

// ---- Money.

export interface Prices {
  input: number; // of a million tokens
  cached: number;
  output: number;
}
export const tokensOf = (a: Account): Record<'input' | 'cached' | 'output', number> => ({
  input: a.prompt_tokens - a.cached_tokens,
  cached: a.cached_tokens,
  output: a.completion_tokens,
});
export function billOf(a: Account, prices: Prices) {
  const n = tokensOf(a);
  const input = (n.input * prices.input) / 1e6, cached = (n.cached * prices.cached) / 1e6, output = (n.output * prices.output) / 1e6;
  return {input, cached, output, sum: input + cached + output};
}
// What so much of the machine's time costs.
export const costOf = (ns: number, hourly: number): number => (ns / 3.6e12) * hourly;
