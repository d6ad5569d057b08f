// A request's time as parts that sum to the total.
import type {Account, LifeKind, LifePart, StepOfRequest} from '../data/api';
import type {Part} from './StackBar.svelte';

const looks: Record<LifeKind, Pick<Part, 'name' | 'colour' | 'tone' | 'sign'>> = {
  read: {name: 'read', colour: 'server', tone: 100},
  parse: {name: 'parse', colour: 'server', tone: 62},
  template: {name: 'template', colour: 'server', tone: 44},
  tokenize: {name: 'tokenize', colour: 'server', tone: 28},
  compile: {name: 'compile', colour: 'server', tone: 14},
  handoff: {name: 'handoff', colour: 'server', tone: 80},
  queue: {name: 'queue', colour: 'waiting'},
  prefill: {name: 'prefill', colour: 'prefill'},
  decode: {name: 'decode', colour: 'decode'},
  sat_out: {name: 'sat out', colour: 'waiting', sign: 'hatched'},
  preempted: {name: 'preempted', colour: 'trouble'},
  paused: {name: 'paused', colour: 'waiting', sign: 'dashed'},
  between: {name: 'between', colour: 'free'},
  write: {name: 'write', colour: 'server', tone: 0},
};
export const kindName = (kind: LifeKind) => looks[kind].name;

export const lifeNs = (life: readonly LifePart[]): number => life.reduce((sum, part) => sum + part[2], 0);

// Nanoseconds by kind, in the order in which they first came.
export function kindsOf(life: readonly LifePart[]): Map<LifeKind, number> {
  const out = new Map<LifeKind, number>();
  for (const [kind, , ns] of life) out.set(kind, (out.get(kind) ?? 0) + ns);
  return out;
}

// From its first byte to its last, by the life or else by the stamps; without them, from submission to its end.
// Until now, while it is not over.
export const lifetime = (a: Account): number => {
  if (a.life) return lifeNs(a.life) / 1e6;
  const t = a.stamps, before = t?.received && t.submitted ? (t.submitted - t.received) / 1e6 : 0;
  if (a.state !== 'ended') return before + (a.age_ms ?? a.total_ms);
  return t?.received && t.last_write ? (t.last_write - t.received) / 1e6 : before + a.total_ms;
};

export const part = (kind: LifeKind, ns: number, note?: string): Part => ({...looks[kind], value: ns / 1e6, of: 'life.part', ...(note ? {note} : {})});

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
// From stamp to stamp, or until now: coarser than its life, and known of every request of a list.
export const spanLooks = {read: {name: 'read and parsed', colour: 'server', tone: 100}, queue: {name: 'queue', colour: 'waiting'}, first: {name: 'to its first token', colour: 'prefill'}, last: {name: 'to its last token', colour: 'decode'}, write: {name: 'written', colour: 'server', tone: 0}} as const;
export function spansOf(a: Account): Part[] | null {
  const t = a.stamps;
  if (!t?.received || !t.submitted) return null;
  const end = t.ended || t.submitted + 1e6 * (a.age_ms ?? 0), admitted = t.admitted || end, first = t.first_token || end;
  const ms = (from: number, to: number) => Math.max(0, to - from) / 1e6;
  return [
    {...spanLooks.read, value: ms(t.received, t.submitted), of: 'life.part'},
    {...spanLooks.queue, value: ms(t.submitted, admitted), of: 'life.part'},
    {...spanLooks.first, value: ms(admitted, first), of: 'life.part'},
    {...spanLooks.last, value: ms(first, end), of: 'life.part'},
    {...spanLooks.write, value: t.ended ? ms(t.ended, t.last_write || t.ended) : 0, of: 'life.part'},
  ];
}
// Its first byte, by the clock of its steps.
export const zeroOf = (a: Account): number => a.life?.[0]?.[1] ?? (a.stamps?.received || (a.stamps?.submitted ?? 0));

// Time per token after the first; of what runs, until now.
export const tpot = (a: Account): number | undefined => {
  const until = a.state === 'ended' ? a.total_ms : a.age_ms;
  return a.completion_tokens > 1 && until !== undefined ? (until - a.ttft_ms) / (a.completion_tokens - 1) : undefined;
};

export const stepMs = (s: StepOfRequest) => s.plan_ms + s.forward_ms + s.sample_ms + s.commit_ms;

export interface Placed {
  step: StepOfRequest;
  start: number; // ms since `zero`
  ms: number; // until the step's end
}

// With the time before a step that belongs to it, where that is told. `zero`: ns; default: the first step.
export function placed(steps: readonly StepOfRequest[], zero = NaN): Placed[] {
  const from = (s: StepOfRequest) => (s.end_ns !== undefined && s.wall_ns !== undefined ? s.end_ns - s.wall_ns : s.start_ns);
  if (Number.isNaN(zero)) zero = steps[0] ? from(steps[0]) : 0;
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

// How it ended, in words.
const kEnds: Record<string, string> = {
  stop: 'the model ended it',
  length: 'it reached its limit of length',
  stopped: 'you stopped it',
  tool_calls: 'it calls a tool',
  content_filter: 'it was filtered',
  cancelled: 'it was cancelled',
  timeout: 'it ran out of time',
};
export const endsAs = (a: {finish_reason?: string}): string => kEnds[a.finish_reason ?? ''] ?? a.finish_reason ?? '';
