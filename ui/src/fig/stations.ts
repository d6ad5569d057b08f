// The stations of one token.
import type {Account, LifePart, StepOfRequest} from '../data/api';
import {kindsOf, part, stepMs} from './life';
import type {Part} from './StackBar.svelte';

// The way to one token: the life of its request until the step that drew it, and what that step did. Together they
// are the time from the first byte to that step's end. Null where its step is not kept.
export function stationsOf(a: Account, position: number): {step: StepOfRequest; before: Part[]; within: Part[]; parts: Part[]} | null {
  const step = a.records?.findLast((s) => s.sampled && s.first + s.tokens === position), from = a.stamps?.received;
  if (!step || !from || step.end_ns === undefined || step.wall_ns === undefined || !a.life) return null;
  const begins = step.end_ns - step.wall_ns;
  const earlier = kindsOf(a.life.filter(([, start]) => start < begins).map(([kind, start, ns, about]): LifePart => [kind, start, Math.min(ns, begins - start), about]));
  // Of parts that were summed up it is not known when they were.
  const exact = Math.abs([...earlier.values()].reduce((sum, ns) => sum + ns, 0) - (begins - from)) < 1;
  const before = exact ? [...earlier].map(([kind, ns]) => part(kind, ns)) : [{...part('between', begins - from), name: 'before its step'}];
  const wall = step.wall_ns / 1e6, rest = wall - stepMs(step);
  // Where steps overlap on a device, the parts of one may be longer than itself.
  const within: Part[] =
    rest < 0
      ? [{name: 'its step', value: wall, of: 'step.wall_ms', colour: step.phase}]
      : [
          {name: 'plan', value: step.plan_ms, of: 'step.plan_ms', colour: 'probe'},
          {name: 'layers', value: step.forward_ms, of: 'step.forward_ms', colour: 'prefill'},
          {name: 'logits, draw', value: step.sample_ms, of: 'step.sample_ms', colour: 'decode'},
          {name: 'commit', value: step.commit_ms, of: 'step.commit_ms', colour: 'draft'},
          {name: 'before it', value: rest, of: 'step.between_ms', colour: 'free'},
        ];
  return {step, before, within, parts: [...before, ...within]};
}
