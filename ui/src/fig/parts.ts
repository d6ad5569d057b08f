// A step's time in parts that sum to it.
import {H, type PackedStep} from '../data/events';

export type StepPart = 'plan' | 'forward' | 'draw' | 'wait' | 'commit' | 'between';
export interface StepParts {
  wall: number; // ms, mean
  ms: Record<StepPart, number>; // mean
  host: number; // share of what is not the model: plan, commit, between
  idle: number; // share in which a device had nothing to do
}
// Waiting for a device is within drawing; what no part covers lies between steps. Where steps overlap on a
// device, the parts of one may be longer than its wall: then nothing lies between.
export function partsOf(steps: readonly PackedStep[]): StepParts {
  const n = Math.max(1, steps.length);
  const mean = (at: number) => steps.reduce((sum, s) => sum + s.head[at]!, 0) / n / 1e6;
  const wall = mean(H.wall), wait = mean(H.wait);
  const ms = {plan: mean(H.plan), forward: mean(H.forward), draw: Math.max(0, mean(H.sample) - wait), wait, commit: mean(H.commit), between: 0};
  ms.between = Math.max(0, wall - ms.plan - ms.forward - ms.draw - ms.wait - ms.commit);
  return {wall, ms, host: wall > 0 ? (ms.plan + ms.commit + ms.between) / wall : 0, idle: wall > 0 ? mean(H.idle) / wall : 0};
}
