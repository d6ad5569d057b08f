// The last steps of the engine, as they come: asked for twice a second while a figure shows them.
import {ApiError, get} from './api';
import {live} from './live.svelte';
import {Poll} from './poll';

export type Phase = 'prefill' | 'decode';
// Id, slot, phase, first position, rows, sampled, FLOPs, bytes of K and V read and written.
export type Entry = [number, number, Phase, number, number, boolean, number, number, number];

export interface Blocked {
  reason: 'seats' | 'pages' | 'policy';
  id: number;
  needed?: number;
  available?: number;
}

export interface Step {
  step: number;
  start_ns: number;
  wall_ns: number;
  plan_ns: number;
  forward_ns: number;
  sample_ns: number;
  commit_ns: number;
  rows: {prefill: number; decode: number; padding: number; head: number};
  flops: number;
  weight_bytes: number;
  kv_read_bytes: number;
  kv_write_bytes: number;
  running: number;
  waiting: number;
  preempted: number;
  pages: {used: number; cached: number; copied: number};
  blocked: Blocked | null;
  entries: Entry[];
}

const kEveryMs = 500, kAtOnce = 256;
export const kKeptSteps = 512;

// The newest kKeptSteps of both, without those that are there twice. Numbers that are missing are a gap.
export function merged(before: readonly Step[], more: readonly Step[]): Step[] {
  const last = before.at(-1)?.step ?? -1;
  const fresh = more.filter((s) => s.step > last);
  // A server that was restarted counts from zero.
  if (more.length && fresh.length === 0 && more[0]!.step < last - kKeptSteps) return [...more];
  return [...before, ...fresh].slice(-kKeptSteps);
}

class StepFeed {
  steps = $state.raw<Step[]>([]);
  allowed = $state(true);
  private next = -1;
  private poll = new Poll(() => this.ask());
  watch = () => this.poll.watch();

  private async ask(): Promise<number | null> {
    try {
      const newest = live.snapshot?.step;
      if (newest !== undefined && !document.hidden) {
        // Of what came meanwhile only the end, where that is more than fits.
        if (this.next < 0 || this.next > newest) (this.next = Math.max(0, newest - kAtOnce)), (this.steps = []);
        const from = Math.max(this.next, newest - kAtOnce);
        const answer = await get<{next: number; steps: Step[]}>(`/api/steps?from=${from}&limit=${kAtOnce}`);
        this.next = answer.next;
        this.steps = merged(this.steps, answer.steps);
      }
    } catch (error) {
      if (error instanceof ApiError && error.status === 403) return (this.allowed = false), null;
    }
    return kEveryMs;
  }
}
export const stepFeed = new StepFeed();
