// A request's time as parts that sum to the total.
import type {Account, LifeKind, LifePart, StepOfRequest} from '../data/api';
import type {Part} from './StackBar.svelte';

const looks: Record<LifeKind, {name: string; colour: Part['colour']}> = {
  read: {name: 'read', colour: 'free'},
  parse: {name: 'parse', colour: 'free'},
  template: {name: 'template', colour: 'free'},
  tokenize: {name: 'tokenize', colour: 'free'},
  compile: {name: 'compile', colour: 'free'},
  handoff: {name: 'handoff', colour: 'free'},
  queue: {name: 'queue', colour: 'waiting'},
  prefill: {name: 'prefill', colour: 'prefill'},
  decode: {name: 'decode', colour: 'decode'},
  sat_out: {name: 'sat out', colour: 'waiting'},
  preempted: {name: 'preempted', colour: 'trouble'},
  paused: {name: 'paused', colour: 'waiting'},
  between: {name: 'between', colour: 'free'},
  write: {name: 'write', colour: 'free'},
};
export const kindName = (kind: LifeKind) => looks[kind].name;

export const lifeNs = (life: readonly LifePart[]): number => life.reduce((sum, part) => sum + part[2], 0);

// Nanoseconds by kind, in the order in which they first came.
export function kindsOf(life: readonly LifePart[]): Map<LifeKind, number> {
  const out = new Map<LifeKind, number>();
  for (const [kind, , ns] of life) out.set(kind, (out.get(kind) ?? 0) + ns);
  return out;
}

// From its first byte to its last; where the life is not told, from submission to its end. Until now, while
// it is not over.
export const lifetime = (a: Account): number =>
  a.life ? lifeNs(a.life) / 1e6 : a.state === 'ended' ? a.total_ms : (a.age_ms ?? a.total_ms);

const part = (kind: LifeKind, ns: number, note?: string): Part => ({...looks[kind], value: ns / 1e6, of: 'life.part', ...(note ? {note} : {})});

export function partsOf(a: Account): Part[] {
  if (a.life) return [...kindsOf(a.life)].map(([kind, ns]) => part(kind, ns));
  const queue = a.state === 'waiting' ? lifetime(a) : a.queue_ms;
  const other = Math.max(0, lifetime(a) - queue - a.prefill_ms - a.decode_ms);
  return [
    {name: 'queue', value: queue, of: 'request.queue_ms', colour: 'waiting'},
    {name: 'prefill', value: a.prefill_ms, of: 'request.prefill_ms', colour: 'prefill'},
    {name: 'decode', value: a.decode_ms, of: 'request.decode_ms', colour: 'decode'},
    {name: 'between', value: other, of: 'request.other_ms', colour: 'free'},
  ];
}
// One after the other, as they came.
export const trackOf = (a: Account): Part[] | undefined => a.life?.map(([kind, , ns]) => part(kind, ns));

// Time per token after the first.
export const tpot = (a: Account): number | undefined =>
  a.completion_tokens > 1 ? (a.total_ms - a.ttft_ms) / (a.completion_tokens - 1) : undefined;

export const stepMs = (s: StepOfRequest) => s.plan_ms + s.forward_ms + s.sample_ms + s.commit_ms;

export interface Placed {
  step: StepOfRequest;
  start: number; // ms since the first step
  ms: number; // until the step's end
}

// With the time before a step that belongs to it, where that is told.
export function placed(steps: readonly StepOfRequest[]): Placed[] {
  const from = (s: StepOfRequest) => (s.end_ns !== undefined && s.wall_ns !== undefined ? s.end_ns - s.wall_ns : s.start_ns);
  const zero = steps[0] ? from(steps[0]) : 0;
  return steps.map((step) => ({step, start: (from(step) - zero) / 1e6, ms: step.wall_ns !== undefined ? step.wall_ns / 1e6 : stepMs(step)}));
}

// Of its own work in a step, by its part of the time: per second.
export interface Rates {
  flops: number;
  bytes: number;
}
export function ratesOf(s: StepOfRequest): Rates | null {
  if (!s.share_ns || s.flops === undefined) return null;
  const seconds = s.share_ns / 1e9;
  return {flops: s.flops / seconds, bytes: ((s.bytes ?? 0) + (s.weight_bytes ?? 0)) / seconds};
}
