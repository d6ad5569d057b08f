// What is kept of a stream or a file, and the state at any time of it. `base` is the state before the
// oldest event that is kept, so a state in the past is the base and the events up to there.
import {endOf, H, kEntry, kHead, type FullSnapshot, type PackedStep, type TraceEvent} from './events';
import {Meter, type Hole} from './meter';
import {State} from './reduce';

export const kKeptNs = 60e9, kKeptBytes = 24 << 20, kShownSteps = 512;

type Kept = {at: number; bytes: number} & ({event: TraceEvent} | {snapshot: FullSnapshot; since: number}); // since: ns; the stream had told all until then; NaN: it is not of a stream

const bytesOf = (event: TraceEvent): number =>
  event.kind === 'step' ? 8 * (event.step.head.length + event.step.entries.length) + 64 * event.pages.length
  : event.kind === 'plan' ? 200 + 64 * event.pages.length
  : 300;

export class Player {
  view = new State(); // what is shown
  meter = new Meter();
  steps: PackedStep[] = []; // of the view, the last kShownSteps
  fresh: PackedStep[] = []; // not yet handed to the page
  reset = true; // fresh are all there are, not an addition
  paused = false;
  lost = 0; // steps that gaps have cost
  private base = new State();
  private kept: Kept[] = [];
  private bytes = 0;
  private next = 0; // of kept: the first that the view has not seen
  private heard = NaN; // ns: all that happened until then is known
  private open: Hole | null = null; // the last one, until the step after it says how many it lost
  // `whole`: a file, nothing of which is dropped.
  constructor(private readonly whole = false) {}

  get seq(): number {
    const last = this.kept.at(-1);
    return Math.max(this.base.seq, this.view.seq, last ? ('event' in last ? last.event.seq : (last.snapshot.seq ?? 0)) : 0);
  }
  get span(): {first: number; last: number; now: number} {
    const first = this.kept[0]?.at ?? this.view.now;
    return {first, last: Math.max(first, this.kept.at(-1)?.at ?? first), now: Math.max(first, this.view.now)};
  }
  get behind(): boolean {
    return this.next < this.kept.length;
  }

  // Everything of before is of another process.
  begin(epoch: string) {
    Object.assign(this, new Player(this.whole));
    this.view.epoch = this.base.epoch = epoch;
  }
  snapshot(snapshot: FullSnapshot) {
    const at = snapshot.now_ns ?? this.kept.at(-1)?.at ?? this.view.now;
    this.push({at, bytes: 2000 + 16 * (snapshot.pages?.groups.reduce((n, g) => n + g.pages.length, 0) ?? 0), snapshot, since: (snapshot.seq ?? 0) > 0 ? this.heard : NaN});
  }
  // Time passes though nothing happens: the stream is there and says so.
  idle(now: number) {
    this.heard = now;
    if (!this.paused && !this.behind) this.view.now = Math.max(this.view.now, now);
  }
  event(event: TraceEvent) {
    this.push({at: event.at, bytes: bytesOf(event), event});
  }
  private push(kept: Kept) {
    this.kept.push(kept);
    this.heard = Math.max(this.heard || 0, kept.at);
    this.bytes += kept.bytes;
    if (!this.paused) this.forward(Infinity);
    if (this.whole) return;
    let drop = 0;
    while (drop < this.next && this.kept.length - drop > 1 && (this.bytes > kKeptBytes || this.kept[drop]!.at < kept.at - kKeptNs)) {
      const old = this.kept[drop++]!;
      this.bytes -= old.bytes;
      if ('event' in old) this.base.apply(old.event);
      else this.base.load(old.snapshot);
    }
    if (drop) (this.kept.splice(0, drop), (this.next -= drop));
    for (const dirty of this.base.dirty) dirty.length = 0;
  }

  // Up to and with this time.
  forward(to: number): void {
    for (; this.next < this.kept.length && this.kept[this.next]!.at <= to; ++this.next) {
      this.one(this.kept[this.next]!);
    }
    if (Number.isFinite(to) && this.next < this.kept.length) this.view.now = Math.max(this.view.now, to);
  }
  private one(kept: Kept) {
    if ('event' in kept) {
      if (kept.event.kind === 'step') this.take(kept.event);
      else this.view.apply(kept.event);
      return this.meter.state(this.view);
    }
    const {snapshot, since, at} = kept, lost = (snapshot.step ?? 0) - this.view.lastStep - 1;
    if (since >= 0 && this.view.lastStep >= 0 && lost > 0) this.open = this.meter.hole(since, at, lost);
    this.view.load(snapshot);
    // Who may not see the pages is not told of all steps either.
    if (snapshot.pages) this.meter.state(this.view);
  }
  private take(event: TraceEvent & {kind: 'step'}) {
    const {step} = event, before = this.view.lastStep, n = step.head[H.n]!;
    // A number that is not the next one is a gap, said or not.
    step.head[H.lost] = before >= 0 && n > before + 1 ? n - before - 1 : 0;
    this.lost += step.head[H.lost]!;
    // Nobody knows how many tokens came meanwhile.
    const lost = step.head[H.lost]!;
    if (this.open) this.open.lost = lost;
    else if (lost > 0) this.meter.hole(lastEnd(this.steps), step.head[H.from]!, lost);
    this.open = null;
    if (lost > 0) for (const s of this.view.sequences.values()) s.last = NaN;
    this.meter.step(step, this.view);
    this.view.apply(event);
    this.steps.push(step);
    this.fresh.push(step);
    if (this.steps.length > 2 * kShownSteps) this.steps = this.steps.slice(-kShownSteps);
    if (this.fresh.length > kShownSteps) (this.fresh = this.fresh.slice(-kShownSteps)), (this.reset = true);
  }

  // The state at this time, whether it is before or after what is shown.
  seek(to: number) {
    if (to < this.view.now || this.next === 0) {
      this.view = this.base.clone();
      this.meter = new Meter();
      this.steps = [];
      this.fresh = [];
      this.lost = this.next = 0;
      this.open = null;
      this.reset = true;
    }
    this.forward(to);
  }

  // The state after the event of this number, as a snapshot of the server has it. False: it is not kept, or not
  // yet there.
  seekSeq(seq: number): boolean {
    if (seq > this.seq || seq < this.base.seq) return false;
    this.seek(-Infinity);
    for (let next; (next = this.kept[this.next]) && ('event' in next ? next.event.seq : (next.snapshot.seq ?? 0)) <= seq; ) this.one(next), ++this.next;
    return true;
  }

  // Steps for the page since the last call: two buffers that can be handed over.
  pack(): {reset: boolean; heads: Float64Array; entries: Float64Array; counts: Uint32Array} {
    const list = this.reset ? this.steps.slice(-kShownSteps) : this.fresh;
    const heads = new Float64Array(list.length * kHead), counts = new Uint32Array(list.length);
    const entries = new Float64Array(list.reduce((sum, s) => sum + s.entries.length, 0));
    let at = 0;
    list.forEach((s, i) => {
      heads.set(s.head, i * kHead);
      entries.set(s.entries, at);
      at += s.entries.length;
      counts[i] = s.entries.length / kEntry;
    });
    const out = {reset: this.reset, heads, entries, counts};
    this.reset = false;
    this.fresh = [];
    return out;
  }
}

export function unpack(packed: {heads: Float64Array; entries: Float64Array; counts: Uint32Array}): PackedStep[] {
  let at = 0;
  return [...packed.counts].map((count, i) => {
    const entries = packed.entries.subarray(at, (at += count * kEntry));
    return {head: packed.heads.subarray(i * kHead, (i + 1) * kHead), entries};
  });
}
export const lastEnd = (steps: readonly PackedStep[]): number => (steps.length ? endOf(steps.at(-1)!) : 0);
