// A snapshot and the events after it give the state; what is kept can be gone back to.
import {describe, expect, test} from 'vitest';
import {decode, decodeLine, E, endOf, H, kEntry, packStep, stepJson, type FullSnapshot, type Message, type TraceEvent} from '../src/data/events';
import {Meter, quantiles} from '../src/data/meter';
import {kKeptNs, Player, unpack} from '../src/data/player';
import {poolOf, State} from '../src/data/reduce';
import {frames} from '../src/data/sse';
import {treeOf} from '../src/data/tree';
import {cellsFor, logScale, rowsFor} from '../src/fig/grid';
import {partsOf} from '../src/fig/parts';
import {dotOf, peaksOf, roofAt, sharesOf} from '../src/fig/roof';

type Json = Record<string, unknown>;
const kMs = 1e6;
const empty = (pages = '........'): FullSnapshot => ({
  seq: 0, epoch: 'a', policy: 'continuous', max_sequences: 4, step_tokens: 256, max_queue: 8, num_running: 0, num_waiting: 0, running: [], waiting: [],
  pages: {groups: [{window: 0, page_size: 4, pages}], tables: []},
});
const event = (name: string, json: Json): TraceEvent => (decode(name, json) as Message & {kind: 'event'}).event;
const arrive = (seq: number, req: number, prompt: number, at = seq * kMs) => event('arrive', {seq, at_ns: at, req, label: `r${req}`, tenant: '', choice: 0, parent: 0, prompt_tokens: prompt, priority: 0});
// req, slot, phase, first, rows, sampled, flops, kv_read, kv_write, share, again, kept, drawn
const step = (seq: number, n: number, entries: unknown[][], pages: unknown[][] = [], more: Json = {}) =>
  event('step', {seq, n, start_ns: seq * kMs, wall_from_ns: seq * kMs, wall_ns: kMs, forward_ns: 0.6 * kMs, sample_ns: 0.2 * kMs, plan_ns: 0.05 * kMs, commit_ns: 0.05 * kMs, flops: 1e6, weight_bytes: 1e5, kv_read_bytes: 0, kv_write_bytes: 0, running: entries.length, waiting: 0, rows: {prefill: 0, decode: entries.length, padding: 0, head: 0}, entries, pages, ...more});
const decodes = (req: number, slot: number, first: number) => [req, slot, 'decode', first, 1, true, 1, 1, 1, 5, 0, 1, 1];

describe('the reducer', () => {
  const s = new State();
  s.load(empty());
  const letters = () => s.pagesJson().groups[0]!.pages;
  test('a sequence arrives, is admitted, prefills and decodes', () => {
    s.apply(arrive(1, 7, 6));
    expect(s.sequences.get(7)).toMatchObject({state: 'waiting', slot: -1, prompt: 6, arrived: kMs});
    s.apply(event('plan', {seq: 2, at_ns: 2 * kMs, n: 0, admit: [[7, 0, 0]], preempt: [], pages: [['take', 0, 3, 7, 0, 1], ['take', 0, 5, 7, 1, 1]], blocked: null}));
    expect(letters()).toBe('...u.u..');
    s.apply(step(3, 0, [[7, 0, 'prefill', 0, 6, true, 1, 1, 1, 9, 0, 6, 1]], [['name', 0, 3, 7, 0, 1]]));
    expect(s.sequences.get(7)).toMatchObject({state: 'decode', slot: 0, computed: 6, output: 1, first: 4 * kMs});
    expect([...s.groups[0]!.fill]).toEqual([0, 0, 0, 4, 0, 2, 0, 0]);
    s.apply(step(4, 1, [decodes(7, 0, 6)]));
    expect(s.pagesJson().tables).toEqual([{id: 7, slot: 0, group: 0, length: 7, pages: [3, 5]}]);
    expect(poolOf(s.groups[0]!)).toMatchObject({used: 2, free: 6, cached: 0, shared: 0, waste: 1 / 8});
  });
  test('a fork shares pages, and the one that writes copies', () => {
    s.apply(arrive(5, 8, 6));
    s.apply(event('plan', {seq: 6, at_ns: 6 * kMs, admit: [[8, 1, 6]], preempt: [], pages: [['share', 0, 3, 8, 0, 2], ['share', 0, 5, 8, 1, 2]], blocked: null}));
    expect([...s.groups[0]!.holders]).toEqual([0, 0, 0, 2, 0, 2, 0, 0]);
    // Whether the old page's release is told before, after or not at all.
    for (const order of [[], ['release'], ['before']] as string[][]) {
      const copy = s.clone(), release = ['release', 0, 5, 8, 1, 1], take = ['copy', 0, 6, 8, 1, 1];
      copy.apply(event('plan', {seq: 7, at_ns: 7 * kMs, pages: order[0] === 'before' ? [release, take] : order[0] ? [take, release] : [take]}));
      expect([...copy.groups[0]!.holders]).toEqual([0, 0, 0, 2, 0, 1, 1, 0]);
      expect(copy.tables.get(8)).toEqual([[3, 6]]);
    }
    s.apply(event('plan', {seq: 7, at_ns: 7 * kMs, pages: [['copy', 0, 6, 8, 1, 1], ['release', 0, 5, 8, 1, 1]]}));
    expect(poolOf(s.groups[0]!).shared).toBe(1);
    expect([...s.groups[0]!.fill].slice(5, 7)).toEqual([3, 2]);
    // Planned while the step that computes the prompt runs: the copy holds nothing that is known to be there.
    const early = s.clone();
    early.apply(arrive(8, 9, 6));
    early.apply(event('plan', {seq: 9, at_ns: 8 * kMs, admit: [[9, 2, 6, 0]], preempt: [], pages: [['share', 0, 5, 9, 1, 2]], blocked: null}));
    early.apply(event('plan', {seq: 10, at_ns: 9 * kMs, pages: [['copy', 0, 7, 9, 1, 1]]}));
    expect([...early.groups[0]!.fill].slice(5)).toEqual([3, 2, 0]);
  });
  test('an end frees what has no key and keeps what has one', () => {
    s.apply(event('step', {seq: 8, n: 2, start_ns: 8 * kMs, wall_ns: kMs, entries: [], pages: [['release', 0, 6, 8, 1, 0], ['release', 0, 3, 8, 0, 1]]}));
    s.apply(event('end', {seq: 9, at_ns: 9 * kMs, req: 8, reason: 'stop', account: {completion_tokens: 1}}));
    s.apply(event('plan', {seq: 10, at_ns: 9 * kMs, pages: [['release', 0, 5, 7, 1, 0], ['release', 0, 3, 7, 0, 0]]}));
    s.apply(event('end', {seq: 11, at_ns: 9 * kMs, req: 7, reason: 'stop', account: {}}));
    expect(letters()).toBe('...c....');
    expect(s.sequences.size + s.tables.size).toBe(0);
  });
  test('a page of the cache is adopted, or evicted and taken', () => {
    const again = s.clone();
    again.apply(event('plan', {seq: 12, at_ns: 12 * kMs, pages: [['adopt', 0, 3, 9, 0, 1]]}));
    expect(again.pagesJson().groups[0]!.pages).toBe('...u....');
    expect(again.groups[0]!.fill[3]).toBe(4);
    s.apply(event('plan', {seq: 12, at_ns: 12 * kMs, pages: [['evict', 0, 3, 0, -1, 0], ['take', 0, 3, 9, 0, 1]]}));
    expect(letters()).toBe('...u....');
    expect(s.groups[0]!.fill[3]).toBe(0);
    s.apply(event('plan', {seq: 13, at_ns: 13 * kMs, pages: [['release', 0, 3, 9, 0, 0]]}));
    expect(letters()).toBe('........');
  });
  test('a preempted one waits again; an event that was seen is not taken twice', () => {
    s.apply(arrive(14, 20, 3));
    s.apply(event('plan', {seq: 15, at_ns: 15 * kMs, admit: [[20, 0, 0]], preempt: [], pages: [['take', 0, 0, 20, 0, 1]], blocked: null}));
    s.apply(event('plan', {seq: 16, at_ns: 16 * kMs, admit: [], preempt: [[20, 21, 1]], pages: [['release', 0, 0, 20, 0, 0]], blocked: {reason: 'pages', id: 20, needed: 9, available: 1}}));
    expect(s.sequences.get(20)).toMatchObject({state: 'preempted', slot: -1, preemptions: 1, computed: 0});
    expect(s.blocked).toMatchObject({reason: 'pages', needed: 9});
    s.apply(arrive(14, 99, 3));
    expect(s.sequences.has(99)).toBe(false);
  });
  test('what is out of range is left out', () => {
    const copy = s.clone();
    copy.apply(event('plan', {seq: 17, at_ns: 0, admit: [[1234, 0, 0]], preempt: [[1235, 0, 0]], pages: [['take', 5, 0, 1, 0, 1], ['take', 0, 99, 1, 0, 1], ['release', 0, 1, 77, 0, 0]]}));
    expect(copy.pagesJson().groups[0]!.pages).toBe('........');
  });
  test('a snapshot tells the same: only what differs has changed', () => {
    const other = new State();
    other.load(empty('.c......'));
    other.anew = false;
    other.load({...empty('.cu.....'), pages: {groups: [{window: 0, page_size: 4, pages: '.cu.....'}], tables: [{id: 3, slot: 0, group: 0, length: 2, pages: [2]}]}});
    expect(other.anew).toBe(false);
    expect(other.dirty).toEqual([[2]]);
    expect(other.groups[0]!.fill[2]).toBe(2);
  });
});

describe('what is kept', () => {
  const filled = (whole = false, steps = 10, first = 0) => {
    const p = new Player(whole);
    p.begin('a');
    p.snapshot(empty());
    p.event(arrive(1, 7, 2));
    p.event(event('plan', {seq: 2, at_ns: 2 * kMs, admit: [[7, 0, 0]], preempt: [], pages: [['take', 0, 0, 7, 0, 1]], blocked: null}));
    for (let i = 0; i < steps; ++i) p.event(step(3 + i, first + i, [decodes(7, 0, i)]));
    return p;
  };
  test('steps are handed over once, and unpacked as they were', () => {
    const p = filled();
    const packed = p.pack();
    expect(packed.reset).toBe(true);
    const steps = unpack(packed);
    expect(steps.map((s) => s.head[H.n])).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(steps[3]!.entries[E.first]).toBe(3);
    p.event(step(13, 10, [decodes(7, 0, 10)]));
    expect(unpack(p.pack()).map((s) => s.head[H.n])).toEqual([10]);
    expect(unpack(p.pack())).toEqual([]);
  });
  test('one can go back and forth: the state is that of then', () => {
    const p = filled(true);
    const end = p.view.clone();
    p.paused = true;
    p.seek(6.5 * kMs);
    expect(p.view.sequences.get(7)).toMatchObject({computed: 3, output: 3});
    expect(p.steps).toHaveLength(3);
    p.seek(1.5 * kMs);
    expect(p.view.sequences.get(7)!.state).toBe('waiting');
    expect(p.view.pagesJson().groups[0]!.pages).toBe('........');
    p.seek(Infinity);
    expect(p.view.pagesJson()).toEqual(end.pagesJson());
    expect(p.view.sequences).toEqual(end.sequences);
    expect(p.behind).toBe(false);
  });
  test('a moment is the state after an event', () => {
    const p = filled();
    p.paused = true;
    expect(p.seekSeq(5)).toBe(true);
    expect([p.view.seq, p.view.lastStep, p.steps.length]).toEqual([5, 2, 3]);
    expect(p.seekSeq(1)).toBe(true);
    expect(p.view.sequences.get(7)!.state).toBe('waiting');
    expect(p.seekSeq(99)).toBe(false);
  });
  test('a pause holds the picture, and going on catches up', () => {
    const p = filled();
    p.paused = true;
    p.event(step(13, 10, [decodes(7, 0, 10)]));
    expect(p.view.lastStep).toBe(9);
    expect(p.seq).toBe(13);
    p.paused = false;
    p.forward(Infinity);
    expect(p.view.lastStep).toBe(10);
  });
  test('what is older than a minute is dropped; what is left still begins right', () => {
    const p = filled();
    p.event(step(100, 10, [decodes(7, 0, 10)], [], {start_ns: kKeptNs + 8.5 * kMs, wall_from_ns: kKeptNs + 8.5 * kMs}));
    expect(p.span.first).toBeGreaterThanOrEqual(9 * kMs);
    p.paused = true;
    p.seek(10.5 * kMs);
    expect(p.view.sequences.get(7)).toMatchObject({output: 7, computed: 7});
    expect(p.view.pagesJson().groups[0]!.pages).toBe('u.......');
  });
  test('numbers that are missing are lost steps, counted exactly', () => {
    const p = filled();
    p.snapshot({...empty(), seq: 40});
    p.event(step(41, 25, []));
    expect(p.steps.at(-1)!.head[H.lost]).toBe(15);
    expect(p.lost).toBe(15);
  });
  test('of what was lost the time is a hole with its number, and no zeros', () => {
    const later = (seq: number, n: number, ms: number) => step(seq, n, [decodes(7, 0, n)], [], {start_ns: ms * kMs, wall_from_ns: ms * kMs});
    const p = filled();
    p.idle(2000 * kMs); // it listened for so long, and nothing came
    p.snapshot({...empty('uuuu....'), seq: 40, step: 25, now_ns: 9000 * kMs});
    p.event(later(41, 26, 9100));
    expect(p.meter.holes).toEqual([{from: 2000 * kMs, to: 9000 * kMs, lost: 16}]);
    const rates = p.meter.rates(9600 * kMs), at = (ms: number) => rates.find((r) => r.at === ms * kMs)!;
    expect(at(1500)).toMatchObject({decode: 0, running: 1, lost: 0});
    expect(at(2500)).toMatchObject({decode: NaN, prefill: NaN, running: NaN, kv: NaN, lost: 16});
    expect(at(9000).decode).toBeNaN();
    expect(at(9500)).toMatchObject({decode: 2, kv: 0.5, lost: 0});
    // Gone back and forth it is the same.
    p.paused = true;
    p.seek(100 * kMs);
    expect(p.meter.holes).toEqual([]);
    p.seek(Infinity);
    expect(p.meter.holes).toHaveLength(1);
    // Of a short one the rate is that of the time that is known.
    const q = filled();
    q.event(later(13, 20, 300));
    expect(q.meter.holes).toEqual([{from: 13 * kMs, to: 300 * kMs, lost: 10}]);
    expect(q.meter.rates(1200 * kMs)[0]!.decode).toBeNaN();
    const r = filled();
    r.event(later(13, 20, 113));
    expect(r.meter.rates(1200 * kMs)[0]!.decode).toBeCloseTo(11 / 0.4);
  });
  test('an engine that idled while nobody listened lost nothing', () => {
    const p = filled();
    p.snapshot({...empty(), seq: 40, step: 10, now_ns: 9000 * kMs});
    expect(p.meter.holes).toEqual([]);
    expect(p.meter.rates(9600 * kMs).every((r) => r.decode >= 0)).toBe(true);
  });
  test('steps of before anybody looked are not lost', () => {
    const p = new Player();
    p.snapshot({...empty(), step: 500});
    p.event(step(3, 500, []));
    expect(p.lost).toBe(0);
    const q = new Player();
    q.snapshot({...empty(), step: 500});
    q.event(step(3, 503, []));
    expect(q.lost).toBe(3);
  });
  test('another process begins anew', () => {
    const p = filled();
    p.begin('b');
    expect([p.seq, p.steps.length, p.view.sequences.size, p.view.epoch]).toEqual([0, 0, 0, 'b']);
  });
});

describe('latencies', () => {
  test('are of the sequences, not of the steps', () => {
    const p = new Player();
    p.snapshot(empty());
    p.event(arrive(1, 7, 2));
    p.event(event('plan', {seq: 2, at_ns: 2 * kMs, admit: [[7, 0, 0]]}));
    for (const [seq, n] of [[3, 0], [5, 1], [9, 2]] as const) p.event(step(seq, n, [decodes(7, 0, n)]));
    expect(p.meter.ttft(p.view.now)).toEqual({count: 1, p50: 3, p95: 3});
    expect(p.meter.itl(p.view.now)).toEqual({count: 2, p50: 2, p95: 4});
    expect(p.meter.throughput()).toEqual([{sequences: 1, steps: 3, rate: 1000, gap: 1}]);
    expect(p.meter.itl(p.view.now + 61e9).count).toBe(0);
  });
  test('quantiles are values that occurred', () => {
    expect(quantiles([[5, 1], [1, 18], [9, 1]])).toEqual({count: 20, p50: 1, p95: 5});
    expect(quantiles([]).count).toBe(0);
  });
  test('rates of a second without steps are zero', () => {
    const meter = new Meter(), s = new State();
    s.load(empty());
    const one = step(1000, 0, [decodes(7, 0, 0)]) as TraceEvent & {kind: 'step'};
    meter.step(one.step, s);
    const rates = meter.rates(3.2e9);
    expect(rates[0]!.decode).toBe(2);
    expect(rates.slice(1).every((r) => r.decode === 0)).toBe(true);
  });
  test('pages in use are the most of the half second, then what is left', () => {
    const meter = new Meter(), s = new State();
    s.load(empty('uu......'));
    meter.step((step(1000, 0, [decodes(7, 0, 0)]) as TraceEvent & {kind: 'step'}).step, s);
    meter.state(s);
    s.load(empty('u.......'));
    meter.state(s);
    const rates = meter.rates(3.2e9);
    expect(rates[0]!.kv).toBe(0.25);
    expect(rates.length).toBeGreaterThan(2);
    expect(rates.slice(1).every((r) => r.kv === 0.125)).toBe(true);
  });
});

describe('steps and files', () => {
  test('a step is packed and told again', () => {
    const json = {n: 4, start_ns: 1, wall_from_ns: 0, wall_ns: 9, rows: {prefill: 3, decode: 1, padding: 0, head: 2}, entries: [[1, 0, 'prefill', 0, 3, true, 5, 6, 7, 8, 0, 3, 1], [2, 1, 'decode', 9, 1, true, 5, 6, 7, 8, 0, 1, 1]]};
    expect(stepJson(packStep(json))).toMatchObject(json);
    expect(endOf(packStep(json))).toBe(9);
  });
  test('of /api/steps: every column of an entry, none made up', () => {
    const entry = [1, 0, 'decode', 9, 4, true, 5, 6, 7, 8, 2, 3, 3];
    const packed = packStep({step: 4, start_ns: 5, wall_ns: 2, padding_share_ns: 11, entries: [entry]});
    expect([packed.head[H.n], endOf(packed), packed.head[H.paddingShare], packed.entries.length]).toEqual([4, 7, 11, kEntry]);
    expect([...packed.entries]).toEqual([1, 0, 1, 9, 4, 1, 5, 6, 7, 8, 2, 3, 3]);
    expect(() => packStep({step: 4, entries: [entry.slice(0, 9)]})).toThrow('9 columns of 13');
  });
  test('lines of a recording, flat or nested; broken ones say so', () => {
    expect(decodeLine('{"event":"end","seq":3,"at_ns":5,"req":1,"reason":"stop"}')).toMatchObject({kind: 'event', event: {kind: 'end', seq: 3, req: 1}});
    expect(decodeLine('{"event":"gap","data":{"from":3,"to":9}}')).toEqual({kind: 'gap', from: 3, to: 9});
    expect(decodeLine('')).toBeNull();
    expect(decodeLine('{"event":"something new"}')).toBeNull();
    expect(() => decodeLine('{"event":')).toThrow();
    expect(() => decodeLine('{}')).toThrow('event');
  });
  test('events of the stream have names and numbers', async () => {
    const bytes = new TextEncoder().encode('event: hello\ndata: {}\n\n: x\nevent: step\nid: 7\ndata: {"n":1}\n\ndata: y\n\n');
    const out = [];
    for await (const frame of frames(new ReadableStream({start: (to) => (to.enqueue(bytes), to.close())}))) out.push(frame);
    expect(out).toEqual([{event: 'hello', id: '', data: '{}'}, {event: 'step', id: '7', data: '{"n":1}'}, {event: '', id: '7', data: 'y'}]);
  });
});

describe('scales', () => {
  test('rows of the grid come in few sizes', () => expect([0, 8, 9, 13, 24, 64, 65, 250].map(rowsFor)).toEqual([8, 8, 12, 16, 24, 64, 96, 256]));
  test('all pages fit', () => {
    for (const pages of [1, 7, 256, 2048, 5000])
      for (const width of [200, 480, 900]) {
        const {side, columns, rows} = cellsFor(pages, width, 256, 20);
        expect(columns * rows).toBeGreaterThanOrEqual(pages);
        expect(columns * side).toBeLessThanOrEqual(width);
        expect(rows * side).toBeLessThanOrEqual(256);
      }
  });
  test('powers of ten', () => {
    const scale = logScale([3, 450]);
    expect([scale.low, scale.high, scale.at(1), scale.at(1000)]).toEqual([1, 1000, 0, 1]);
    expect(scale.ticks).toEqual([1, 10, 100, 1000]);
    expect(logScale([]).ticks.length).toBeGreaterThan(1);
    expect(logScale([1]).high).toBe(100);
  });
});

describe('the roof', () => {
  const peaks = {flops: 100e9, bytes: 10e9};
  test('is the lower of both', () => expect([roofAt(peaks, 1), roofAt(peaks, 100)]).toEqual([10e9, 100e9]));
  test('a step is a dot under it', () => {
    const dot = dotOf((step(1, 0, []) as TraceEvent & {kind: 'step'}).step)!;
    expect(dot).toMatchObject({intensity: 10, prefill: false});
    expect(dot.rate).toBeCloseTo(1e6 / 0.8e-3);
    expect(sharesOf([dot], peaks)!.flops).toBeCloseTo(dot.rate / 100e9);
    expect(sharesOf([], peaks)).toBeNull();
  });
  test('peaks are those that the server measured, if any', () => {
    expect(peaksOf({gflop_s: 100, read_gb_s: 20})).toEqual({flops: 100e9, bytes: 20e9});
    expect(peaksOf(null)).toBeNull();
  });
});

test('parts of a step sum to it', () => {
  const one = (step(1, 0, []) as TraceEvent & {kind: 'step'}).step, parts = partsOf([one]);
  expect(Object.values(parts.ms).reduce((a, b) => a + b, 0)).toBeCloseTo(1, 9);
  expect(parts.host).toBeCloseTo(0.2, 9);
});

test('the tree is walked from its roots, told flat or nested', () => {
  const flat = treeOf({nodes: [{parent: -1, tokens: 96, pages: 6}, {parent: 0, tokens: 16}, {parent: 0, tokens: 32, text: 'x'}]});
  expect(flat.map((n) => [n.depth, n.before, n.tokens])).toEqual([[0, 0, 96], [1, 96, 32], [1, 96, 16]]);
  expect(treeOf({children: [{tokens: 4, children: [{tokens: 2}]}]}).map((n) => n.depth)).toEqual([0, 1]);
  expect(treeOf({})).toEqual([]);
});
