// The two phases of a request: from its steps, and the sum that they make.
import type {Account, StepOfRequest} from './api';
import {stepMs} from '../fig/life';

export interface Phase {
  steps: number;
  rows: number;
  ms: number;
}
export function phasesOf(steps: readonly StepOfRequest[]): Record<'prefill' | 'decode', Phase> {
  const out = {prefill: {steps: 0, rows: 0, ms: 0}, decode: {steps: 0, rows: 0, ms: 0}};
  for (const s of steps) {
    const phase = out[s.phase];
    ++phase.steps;
    phase.rows += s.tokens;
    phase.ms += stepMs(s);
  }
  return out;
}

// The time between two of its draws, by the clock of the steps that drew; undefined: there were not two.
export function gapOf(steps: readonly StepOfRequest[]): number | undefined {
  const ends = steps.filter((s) => s.sampled).map((s) => ((s as {end_ns?: number}).end_ns ?? s.start_ns + stepMs(s) * 1e6) / 1e6);
  return ends.length > 1 ? (ends.at(-1)! - ends[0]!) / (ends.length - 1) : undefined;
}

// TTFT + TPOT x n. The first token is in TTFT already, so n is of the tokens after it.
export interface Sum {
  first: number; // ms
  per: number; // ms
  after: number; // tokens after the first
  sum: number;
  all: number; // the sum that counts the first token twice
  total: number; // measured
}
export function sumOf(a: Account): Sum | null {
  const per = a.state === 'ended' && (a.records?.length ?? 0) === a.steps ? gapOf(a.records ?? []) : undefined;
  if (per === undefined || a.completion_tokens < 2) return null;
  const after = a.completion_tokens - 1;
  return {first: a.ttft_ms, per, after, sum: a.ttft_ms + per * after, all: a.ttft_ms + per * (after + 1), total: a.total_ms};
}
