// The arithmetic of the chapters: sizes of caches, two phases, prices.
import {beforeAll, describe, expect, test, vi} from 'vitest';
import type {Account, Info, StepOfRequest} from '../src/data/api';
import {packStep} from '../src/data/events';
import {plain} from '../src/data/format';
import {gapOf, phasesOf, sumOf} from '../src/data/phases';
import {billOf, costOf, timesOf, tokensOf, totalOf, workOf} from '../src/data/price';
import {wireOf} from '../src/journey/wire';
import {cacheLines, fitting, kShapes, roomOf, shapeOf, tablesFor, tokenBytes} from '../src/data/sizes';

beforeAll(() => {
  vi.stubGlobal('sessionStorage', {getItem: () => null, setItem: () => {}, removeItem: () => {}});
});

const info = (groups: Info['memory']['groups'], more: Partial<Info['model']> = {}) =>
  ({
    model: {layers: 8, heads: 6, kv_heads: 2, head_dim: 64, ...more}, options: {page_size: 32, kv_type: 'f16'},
    memory: {groups, kv_bytes: groups.reduce((sum, g) => sum + g.page_bytes * (g.pages + (g.spare_pages ?? 0)), 0)},
  }) as Info;
const group = {layers: 8, window: 0, kv_heads: 2, key_width: 64, value_width: 64, pages: 64, spare_pages: 0, pages_per_sequence: 16, page_bytes: 8 * 2 * 128 * 2 * 32};

describe('sizes', () => {
  test('known shapes take what is written of them', () => {
    const [every, without, shared] = kShapes.map((s) => ({token: tokenBytes(s.shape), all: tokenBytes(s.shape) * s.context}));
    expect(every).toEqual({token: 512 * 1024, all: 2 * 2 ** 30});
    expect((without!.all / 1e9).toFixed(1)).toBe('10.7');
    expect((shared!.all / 1e9).toFixed(2)).toBe('1.34');
    expect(without!.all / shared!.all).toBe(8);
    expect(tokenBytes({layers: 1, heads: 1, kvHeads: 1, width: 1, type: 'f32'})).toBe(8);
  });
  test('the loaded model’s line is its bytes, with spare pages, padding and windows', () => {
    for (const groups of [
      [group],
      [{...group, spare_pages: 1}],
      [{...group, page_bytes: group.page_bytes + 4096}],
      [{...group, layers: 4, page_bytes: group.page_bytes / 2}, {...group, layers: 4, window: 64, pages: 9, page_bytes: group.page_bytes / 2}],
    ]) {
      const told = info(groups), lines = cacheLines(told)!;
      expect(lines.reduce((sum, line) => sum + line.product + line.padding, 0)).toBe(told.memory.kv_bytes);
    }
    expect(cacheLines(info([group]))![0]).toMatchObject({product: info([group]).memory.kv_bytes, padding: 0, positions: 2048, width: 128});
    expect(cacheLines(info([{...group, page_bytes: group.page_bytes + 4096}]))![0]!.padding).toBe(64 * 4096);
  });
  test('an older server does not say', () => {
    const {kv_heads: _, ...old} = group;
    expect(cacheLines(info([old]))).toBeNull();
    expect(shapeOf(info([old]))).toMatchObject({kvHeads: 2, width: 64, type: 'f16'});
    expect(shapeOf({...info([group]), model: {layers: 8, heads: 6}} as Info)).toBeNull();
  });
  test('as many fit as the smallest pool holds', () => {
    expect(fitting([group], 32, 512)).toBe(4);
    expect(fitting([group], 32, 33)).toBe(32);
    expect(fitting([group], 32, 32)).toBe(64);
    // Behind a window pages are given back, so length costs nothing there.
    expect(fitting([{...group, pages: 30, pages_per_sequence: 3}], 32, 512)).toBe(10);
    expect(fitting([group, {...group, pages: 6, pages_per_sequence: 3}], 32, 512)).toBe(2);
  });
  test('slabs against pages, with what is shared', () => {
    // Three full pages of four, one begun; 10 tokens each after a prompt of 3 * 4 + 1.
    const tables = tablesFor([23, 23, 23, 23], 13, 4), room = roomOf(tables, 64, 4);
    expect(tables.every((t) => t.pages.length === 6 && t.pages[2] === 2)).toBe(true);
    expect(new Set(tables.map((t) => t.pages[3])).size).toBe(4);
    expect(room).toEqual({slabs: 256, used: 92, pages: 3 + 4 * 3, taken: 60, held: 12 + 4 * 11});
    expect(roomOf([{length: 5, pages: [-1, 7]}], 8, 4)).toEqual({slabs: 8, used: 5, pages: 1, taken: 4, held: 1});
    expect(roomOf([], 8, 4)).toEqual({slabs: 0, used: 0, pages: 0, taken: 0, held: 0});
  });
});

const step = (start: number, tokens: number, sampled: boolean, ms = 2): StepOfRequest => ({
  start_ns: start * 1e6, plan_ms: 0, forward_ms: ms, sample_ms: 0, commit_ms: 0, phase: tokens > 1 ? 'prefill' : 'decode', first: 0, tokens, sampled,
});
describe('two phases', () => {
  // A prompt in two steps, then a token every 5 ms.
  const records = [step(10, 100, false, 4), step(15, 50, true, 4), ...[24, 29, 34, 39].map((at) => step(at, 1, true))];
  const account = {state: 'ended', records, steps: 6, ttft_ms: 19, total_ms: 43, completion_tokens: 5} as Account;
  test('are counted apart', () => {
    expect(phasesOf(records)).toEqual({prefill: {steps: 2, rows: 150, ms: 8}, decode: {steps: 4, rows: 4, ms: 8}});
  });
  test('TTFT and TPOT make the total', () => {
    expect(gapOf(records)).toBeCloseTo((41 - 19) / 4, 9);
    const sum = sumOf(account)!;
    expect(sum.after).toBe(4);
    expect(sum.sum).toBeCloseTo(19 + 22, 9);
    expect(sum.total - sum.sum).toBeCloseTo(2, 9);
    expect(sum.all - sum.sum).toBeCloseTo(sum.per, 9);
  });
  test('are not summed where steps are missing, or while it runs', () => {
    expect(sumOf({...account, steps: 7})).toBeNull();
    expect(sumOf({...account, state: 'decode'})).toBeNull();
    expect(sumOf({...account, completion_tokens: 1})).toBeNull();
    expect(gapOf(records.slice(0, 2))).toBeUndefined();
  });
});

describe('prices', () => {
  const json = (n: number, rows: {prefill: number; decode: number}, entries: unknown[][]) =>
    packStep({n, wall_ns: 100, weight_bytes: 1000, rows: {...rows, padding: 0, head: 0}, entries});
  // Two sequences; number 7 prefills, decodes, and computes three of five rows again.
  const steps = [
    json(1, {prefill: 8, decode: 2}, [[7, 0, 'prefill', 0, 8, true, 80, 16, 24, 61, 0, 8, 1], [9, 1, 'decode', 4, 2, true, 20, 5, 5, 39, 0, 2, 1]]),
    json(2, {prefill: 0, decode: 2}, [[7, 0, 'decode', 8, 1, true, 10, 9, 3, 50, 0, 1, 1], [9, 1, 'decode', 6, 1, true, 10, 9, 3, 50, 0, 1, 1]]),
    json(3, {prefill: 5, decode: 0}, [[7, 0, 'prefill', 0, 5, true, 50, 10, 15, 101, 3, 5, 1]]),
  ];
  test('the parts by kind are the account', () => {
    const works = workOf(steps, 7), sum = totalOf(works);
    expect(works.steps).toBe(3);
    expect(works.of.output).toEqual({rows: 1, ns: 50, flops: 10, weights: 500, kvRead: 9, kvWrite: 3});
    expect(works.of.wasted).toEqual({rows: 3, ns: 60, flops: 30, weights: 600, kvRead: 6, kvWrite: 9});
    expect(works.of.input.ns).toBe(61 + 41);
    expect(sum).toEqual({rows: 14, ns: 212, flops: 140, weights: 800 + 500 + 1000, kvRead: 35, kvWrite: 42});
    expect(workOf(steps, 8).steps).toBe(0);
    expect(totalOf(workOf(steps, 8)).ns).toBe(0);
  });
  test('steps that do not say how their time is divided are refused, not counted as nothing', () => {
    expect(() => json(4, {prefill: 0, decode: 1}, [[7, 0, 'decode', 9, 1, true, 10, 9, 3]])).toThrow('9 columns of 13');
  });
  test('money is tokens by price, and time by what an hour costs', () => {
    const a = {prompt_tokens: 1000, cached_tokens: 600, completion_tokens: 50, prefill_ms: 20, decode_ms: 30} as Account;
    expect(tokensOf(a)).toEqual({input: 400, cached: 600, output: 50});
    const bill = billOf(a, {input: 2, cached: 0.5, output: 8});
    expect(bill.sum).toBeCloseTo(0.0008 + 0.0003 + 0.0004, 12);
    expect(bill.input + bill.cached + bill.output).toBe(bill.sum);
    expect(costOf(3600e9, 3)).toBeCloseTo(3, 12);
    expect(timesOf(a)).toEqual({ns: {input: 20e6, cached: NaN, output: 30e6, wasted: 0}, divided: false});
    expect(timesOf({...a, shares: {input_ns: 1, cached_ns: 4, output_ns: 2, wasted_ns: 3}})).toEqual({ns: {input: 1, cached: 4, output: 2, wasted: 3}, divided: true});
  });
  test('small sums of money keep three digits', () => {
    expect(plain(0.0000556, 'money')).toBe('0.0000556');
    expect(plain(0.5, 'money')).toBe('0.500');
    expect(plain(1234.5, 'money')).toBe('1,234.50');
    expect(plain(0, 'money')).toBe('0.00');
  });
});

test('the way of a request is the browser’s clock, cut at its marks', () => {
  expect(wireOf({startTime: 10, requestStart: 12, responseStart: 30, responseEnd: 95})).toEqual({before: 2, wait: 18, answer: 65});
});
