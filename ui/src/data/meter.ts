// Rates and latencies, from the steps of the last minute.
import {E, endOf, H, kEntry, sizeOf, type PackedStep} from './events';
import type {State} from './reduce';

export const kSpanNs = 60e9, kBucketNs = 500e6;

export interface RateBucket {
  at: number; // ns of its end
  prefill: number; // tokens a second
  decode: number;
  running: number; // most at once
  waiting: number;
  kv: number; // share of the pages that are held
  lost: number; // steps of a hole that begins in it; where most of it is a hole, all else is NaN
}
// A time of which this page knows only how many steps it missed.
export interface Hole {
  from: number; // ns
  to: number;
  lost: number;
}
export interface Quantiles {
  count: number;
  p50: number; // ms; NaN: nothing was measured
  p95: number;
}
// Steps of n sequences that only decoded: tokens a second of them.
export interface CurvePoint {
  sequences: number;
  steps: number;
  rate: number;
  gap: number; // ms a step: what each of them waits for a token
}

// The smallest value that at least this share does not exceed. Values with how often they occurred.
export function quantiles(values: readonly (readonly [number, number])[]): Quantiles {
  const sorted = [...values].sort((a, b) => a[0] - b[0]);
  const count = sorted.reduce((sum, [, times]) => sum + times, 0);
  const at = (share: number) => {
    let rest = Math.max(1, Math.ceil(share * count - 1e-9));
    for (const [value, times] of sorted) if ((rest -= times) <= 0) return value;
    return NaN;
  };
  return {count, p50: at(0.5), p95: at(0.95)};
}

interface Timed {
  at: number;
  ms: number;
  times: number;
}

export class Meter {
  private gaps: Timed[] = []; // between two tokens of a sequence
  private firsts: Timed[] = []; // from arrival to the first token
  private buckets: {at: number; prefill: number; decode: number; running: number; waiting: number; kv: number; left: {running: number; waiting: number; kv: number}}[] = [];
  holes: Hole[] = [];
  private curve = new Map<number, {steps: number; tokens: number; wall: number}>();

  // Before the state has taken the step: it still knows when the sequences drew the last token.
  step(step: PackedStep, state: State) {
    const end = endOf(step), {head, entries} = step;
    const gaps = new Map<number, number>();
    let drawn = 0;
    for (let at = 0; at < entries.length; at += kEntry) {
      const tokens = entries[at + E.drawn]!;
      if (tokens === 0) continue;
      drawn += tokens;
      const s = state.sequences.get(entries[at + E.req]!);
      if (!s) continue;
      if (!Number.isNaN(s.last)) gaps.set(end - s.last, (gaps.get(end - s.last) ?? 0) + 1);
      else if (s.output === 0 && !Number.isNaN(s.arrived)) this.firsts.push({at: end, ms: (end - s.arrived) / 1e6, times: 1});
    }
    for (const [ns, times] of gaps) this.gaps.push({at: end, ms: ns / 1e6, times});
    const bucket = this.bucket(end);
    bucket.prefill += head[H.prefill]!;
    bucket.decode += drawn;
    bucket.running = Math.max(bucket.running, head[H.running]!);
    bucket.waiting = Math.max(bucket.waiting, head[H.waiting]!);
    if (head[H.prefill] === 0 && drawn > 0) {
      const n = sizeOf(step), point = this.curve.get(n) ?? {steps: 0, tokens: 0, wall: 0};
      ++point.steps;
      point.tokens += drawn;
      point.wall += head[H.wall]!;
      this.curve.set(n, point);
    }
  }

  // After anything that happened, or a first look: the most that was held at once, and what is left when nothing
  // follows.
  state(state: State) {
    let used = 0, total = 0;
    for (const g of state.groups) (total += g.state.length), (used += g.used);
    const bucket = this.bucket(state.now), {left} = bucket;
    left.kv = total > 0 ? used / total : NaN;
    ({running: left.running, waiting: left.waiting} = state.others);
    for (const s of state.sequences.values()) s.state === 'waiting' || s.state === 'preempted' ? ++left.waiting : ++left.running;
    bucket.kv = Math.max(bucket.kv || 0, left.kv);
  }
  hole(from: number, to: number, lost: number): Hole {
    const hole = {from: Math.min(from, to), to, lost};
    this.holes.push(hole);
    return hole;
  }

  private bucket(at: number) {
    const slot = Math.floor(at / kBucketNs) * kBucketNs, before = this.buckets.at(-1);
    if (before && before.at >= slot) return before;
    const left = before ? {...before.left} : {running: 0, waiting: 0, kv: NaN};
    const bucket = {at: slot, prefill: 0, decode: 0, running: 0, waiting: 0, kv: NaN, left};
    this.buckets.push(bucket);
    return bucket;
  }
  private trim(now: number) {
    for (const list of [this.gaps, this.firsts, this.buckets] as {at: number}[][]) {
      let n = 0;
      while (n < list.length && list[n]!.at < now - kSpanNs) ++n;
      if (n) list.splice(0, n);
    }
    this.holes = this.holes.filter((h) => h.to >= now - kSpanNs);
  }

  // Since somebody looked. Seconds without a step are zeros; of those in a hole nothing is known.
  rates(now: number): RateBucket[] {
    this.trim(now);
    const out: RateBucket[] = [];
    const byTime = new Map(this.buckets.map((b) => [b.at, b]));
    const last = Math.floor(now / kBucketNs) * kBucketNs;
    let left = {running: 0, waiting: 0, kv: NaN};
    const from = Math.max(last - kSpanNs, Math.min(this.buckets[0]?.at ?? Infinity, Math.floor((this.holes[0]?.from ?? Infinity) / kBucketNs) * kBucketNs));
    for (let at = from; at <= last; at += kBucketNs) {
      const b = byTime.get(at), end = at + kBucketNs;
      const gone = this.holes.reduce((sum, h) => sum + Math.max(0, Math.min(h.to, end) - Math.max(h.from, at)), 0);
      const lost = this.holes.reduce((sum, h) => sum + (h.from >= at && h.from < end ? h.lost : 0), 0);
      const seconds = Math.max(0.1, ((at === last ? Math.max(now - at, 0.25 * kBucketNs) : kBucketNs) - gone) / 1e9);
      out.push(
        gone > kBucketNs / 2
          ? {at: end, prefill: NaN, decode: NaN, running: NaN, waiting: NaN, kv: NaN, lost}
          : {
              at: end, prefill: (b?.prefill ?? 0) / seconds, decode: (b?.decode ?? 0) / seconds,
              running: Math.max(b?.running ?? 0, (b?.left ?? left).running), waiting: Math.max(b?.waiting ?? 0, (b?.left ?? left).waiting), kv: b?.kv ?? left.kv, lost,
            },
      );
      left = b?.left ?? left;
    }
    // The newest is not over yet, unless it is all there is.
    return out.length > 1 ? out.slice(0, -1) : out;
  }
  ttft(now: number): Quantiles {
    return this.trim(now), quantiles(this.firsts.map((t) => [t.ms, t.times] as const));
  }
  itl(now: number): Quantiles {
    return this.trim(now), quantiles(this.gaps.map((t) => [t.ms, t.times] as const));
  }
  throughput(): CurvePoint[] {
    return [...this.curve]
      .map(([sequences, p]) => ({sequences, steps: p.steps, rate: p.tokens / (p.wall / 1e9), gap: p.wall / p.steps / 1e6}))
      .sort((a, b) => a.sequences - b.sequences);
  }
}
