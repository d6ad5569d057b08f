// A request's time as parts that sum to the total.
import type {Account, StepOfRequest} from '../data/api';
import type {Part} from './StackBar.svelte';

// Until its end, or until now.
export const lifetime = (a: Account): number => (a.state === 'ended' ? a.total_ms : (a.age_ms ?? a.total_ms));

export function partsOf(a: Account): Part[] {
  const queue = a.state === 'waiting' ? lifetime(a) : a.queue_ms;
  const other = Math.max(0, lifetime(a) - queue - a.prefill_ms - a.decode_ms);
  return [
    {name: 'queue', value: queue, of: 'request.queue_ms', colour: 'waiting'},
    {name: 'prefill', value: a.prefill_ms, of: 'request.prefill_ms', colour: 'prefill'},
    {name: 'decode', value: a.decode_ms, of: 'request.decode_ms', colour: 'decode'},
    {name: 'between', value: other, of: 'request.other_ms', colour: 'free'},
  ];
}

// Time per token after the first.
export const tpot = (a: Account): number | undefined =>
  a.completion_tokens > 1 ? (a.total_ms - a.ttft_ms) / (a.completion_tokens - 1) : undefined;

export const stepMs = (s: StepOfRequest) => s.plan_ms + s.forward_ms + s.sample_ms + s.commit_ms;

export interface Placed {
  step: StepOfRequest;
  start: number; // ms since the first step
  ms: number;
}

export function placed(steps: readonly StepOfRequest[]): Placed[] {
  const zero = steps[0]?.start_ns ?? 0;
  return steps.map((step) => ({step, start: (step.start_ns - zero) / 1e6, ms: stepMs(step)}));
}
