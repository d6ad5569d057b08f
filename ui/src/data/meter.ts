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
  private buckets: {at: number; prefill: number; decode: number; running: number; waiting: number; kv: number; left: number}[] = [];
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
    const slot = Math.floor(end / kBucketNs) * kBucketNs;
    let bucket = this.buckets.at(-1);
    if (!bucket || bucket.at < slot) this.buckets.push((bucket = {at: slot, prefill: 0, decode: 0, running: 0, waiting: 0, kv: 0, left: 0}));
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

  // After a step or an end: most of the pages that were held at once, and what is left when nothing follows.
  pages(state: State) {
    const bucket = this.buckets.at(-1);
    let used = 0, total = 0;
    for (const g of state.groups) (total += g.state.length), (used += g.used);
    if (!bucket || total === 0) return;
    bucket.left = used / total;
    bucket.kv = Math.max(bucket.kv, bucket.left);
  }

  private trim(now: number) {
    for (const list of [this.gaps, this.firsts, this.buckets] as {at: number}[][]) {
      let n = 0;
      while (n < list.length && list[n]!.at < now - kSpanNs) ++n;
      if (n) list.splice(0, n);
    }
  }

  // Seconds without a step are zeros.
  rates(now: number): RateBucket[] {
    this.trim(now);
    const out: RateBucket[] = [];
    const byTime = new Map(this.buckets.map((b) => [b.at, b]));
    const last = Math.floor(now / kBucketNs) * kBucketNs;
    let left = 0;
    const from = Math.max(last - kSpanNs, this.buckets[0]?.at ?? last);
    for (let at = from; at <= last; at += kBucketNs) {
      const b = byTime.get(at), seconds = Math.max(0.1, (at === last ? Math.max(now - at, 0.25 * kBucketNs) : kBucketNs) / 1e9);
      out.push({
        at: at + kBucketNs, prefill: (b?.prefill ?? 0) / seconds, decode: (b?.decode ?? 0) / seconds,
        running: b?.running ?? 0, waiting: b?.waiting ?? 0, kv: b?.kv ?? left,
      });
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
