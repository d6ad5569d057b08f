// A life: who was in the way, the way to the first token, the part of it that is looked at.
import {describe, expect, test} from 'vitest';
import type {Account, LifePart} from '../src/data/api';
import {placed, zeroOf} from '../src/fig/life';
import {causeOf, causeSays, companyOf, firstOf, reasonOf, rounded, wayOf} from '../src/fig/reasons';
import {isWhole, moved, nextKey, readSpan, sighted, spanKey, within, writeSpan, zoomed} from '../src/fig/span';

const life: LifePart[] = [
  ['read', 1000, 103_000, null],
  ['handoff', 104_000, 50_001, {reason: 'worker'}],
  ['queue', 154_001, 4_100_000, {reason: 'behind', behind: [41], ran: [[41, 4_000_000, 512, 0]]}],
  ['prefill', 4_254_001, 56_000_000, null],
  ['decode', 60_254_001, 9_000_000, null],
];
const account = (more: Partial<Account> = {}) => ({life, stamps: {received: 1000, first_token: 60_000_500}, ...more}) as Account;

describe('the way to the first token', () => {
  test('sums to it to the nanosecond, and ends inside of a part', () => {
    const way = firstOf(account())!;
    expect(way.ns).toBe(60_000_500 - 1000);
    expect(way.kinds.map(([kind]) => kind)).toEqual(['read', 'handoff', 'queue', 'prefill']);
    expect(way.kinds.reduce((sum, [, ns]) => sum + ns, 0)).toBe(way.ns);
    expect(way.kinds[3]![1]).toBe(60_000_500 - 4_254_001);
  });
  test('is a sentence', () => {
    const said = wayOf(account()), shown = said.flatMap((x) => (Array.isArray(x) ? [x[1]!] : []));
    expect(said.filter((x) => typeof x === 'string')).toEqual(['To its first token ', ' = read ', ' + handoff ', ' + queue ', ' + prefill ']);
    expect(shown[0]).toBe(60);
    expect(shown.slice(1).reduce((sum, ms) => sum + Math.round(10 * ms), 0)).toBe(600);
    expect(wayOf({} as Account)).toEqual([]);
  });
  test('is not told without a first token, or of sums', () => {
    expect(firstOf(account({stamps: {received: 1000, first_token: 0} as Account['stamps'] & object}))).toBeNull();
    expect(firstOf(account({life: [...life.slice(0, 3), ['prefill', 4_254_001, 56_000_000, {sum_of: 12}]]}))).toBeNull();
    const {life: _, ...none} = account();
    expect(firstOf(none as Account)).toBeNull();
  });
  test('what is shown sums to what is shown, each within one of its last digit', () => {
    let seed = 7;
    const random = () => (seed = (seed * 16807) % 2147483647) / 2147483647;
    for (let n = 0; n < 500; ++n) {
      const parts = Array.from({length: 1 + Math.floor(random() * 9)}, () => Math.floor(10 ** (10 * random())));
      const sum = parts.reduce((a, b) => a + b, 0), out = rounded(parts), unit = 10 ** (6 - out.places);
      expect(out.parts.reduce((a, ms) => a + Math.round(ms * 10 ** out.places), 0)).toBe(Math.round(out.total * 10 ** out.places));
      expect(Math.abs(out.total * 1e6 - sum)).toBeLessThanOrEqual(unit / 2 + 1e-3);
      out.parts.forEach((ms, i) => expect(Math.abs(ms * 1e6 - parts[i]!)).toBeLessThan(unit + 1e-3));
      if (sum >= 1e6) expect(Math.round(out.total * 10 ** out.places)).toBeGreaterThanOrEqual(100);
    }
    expect(rounded([100_000, 200_000, 100_000, 4_100_000, 55_900_000, 1_400_000])).toEqual({places: 1, total: 61.8, parts: [0.1, 0.2, 0.1, 4.1, 55.9, 1.4]});
    expect(rounded([])).toEqual({places: 3, total: 0, parts: []});
  });
});

describe('reasons', () => {
  test('count one row as one', () => {
    expect(reasonOf(['queue', 0, 1, {reason: 'step', ran: [['a', 2e6, 0, 1]]}]).slice(-3)).toEqual([' for ', ['life.rows', 1], ' row of decode']);
  });
  test('say who was in the way, and whose name may not be told', () => {
    expect(causeSays(life[2]!)).toBe('behind request 41');
    expect(causeSays(['queue', 0, 1, {reason: 'behind', behind: [null]}])).toBe('behind another key’s request');
    expect(causeSays(['preempted', 0, 1, {by: 'other'}])).toBe('by request other');
    expect(reasonOf(['queue', 0, 1, {reason: 'seats'}])).toEqual(['for a seat']);
    expect(reasonOf(life[2]!)).toEqual(['behind ', {who: 41}, '; meanwhile ', {who: 41}, ': ', ['life.ran', 4], ' for ', ['life.rows', 512], ' rows of prefill']);
    expect(causeOf(['sat_out', 0, 1, {reason: 'pages'}])).not.toEqual(causeOf(['queue', 0, 1, {reason: 'pages'}]));
    expect(reasonOf(life[0]!)).toEqual([]);
    expect(causeSays(['queue', 0, 1, {reason: 'something new'}])).toBe('something new');
  });
});

test('the company of a step is named, up to so many', () => {
  const step = {company: [[3, 'prefill', 19], [4, 'decode', 1]]} as unknown as Parameters<typeof companyOf>[0];
  expect(companyOf(step).filter((x) => typeof x !== 'string')).toEqual([{who: 3, bare: true}, ['step.all_rows', 19], {who: 4, bare: true}]);
  expect(companyOf(step, 1).at(-1)).toBe(' …');
});
test('steps lie on the clock of the life', () => {
  const step = {start_ns: 4_300_000, end_ns: 60_254_001, wall_ns: 56_000_000, plan_ms: 0, forward_ms: 0, sample_ms: 0, commit_ms: 0, phase: 'prefill' as const, first: 0, tokens: 1, sampled: true};
  expect(placed([step], zeroOf(account()))[0]!.start).toBeCloseTo((4_254_001 - 1000) / 1e6, 9);
  expect(placed([step])[0]!.start).toBe(0);
  expect(zeroOf({stamps: {received: 0, submitted: 5}} as unknown as Account)).toBe(5);
});

describe('the part of the time that is looked at', () => {
  const all = {from: 0, to: 80};
  const key = (name: string, more = {}) => ({key: name, ctrlKey: false, metaKey: false, altKey: false, ...more}) as KeyboardEvent;
  test('never leaves the whole', () => {
    expect(within({from: -5, to: 20}, 80)).toEqual({from: 0, to: 25});
    expect(within({from: 70, to: 100}, 80)).toEqual({from: 50, to: 80});
    expect(within({from: -10, to: 200}, 80)).toEqual(all);
    expect(within({from: 7, to: 7}, 80).to).toBeGreaterThan(7);
  });
  test('goes closer about what is chosen, and back', () => {
    expect(zoomed(all, 80, 0.5, 60)).toEqual({from: 30, to: 70});
    expect(zoomed({from: 30, to: 70}, 80, 2, 50)).toEqual({from: 0, to: 80});
    expect(moved({from: 20, to: 40}, 80, 0.25)).toEqual({from: 25, to: 45});
    expect(spanKey(key('w'), all, 80, NaN)).toEqual({from: 20, to: 60});
    expect(spanKey(key('w'), all, 80, 10)).toEqual({from: 5, to: 45});
    expect(spanKey(key('s'), all, 80, 10)).toEqual(all);
    expect(spanKey(key('a'), {from: 20, to: 40}, 80, NaN)).toEqual({from: 15, to: 35});
    expect(spanKey(key('d'), {from: 20, to: 40}, 80, NaN)).toEqual({from: 25, to: 45});
    expect(spanKey(key('x'), all, 80, NaN)).toBeNull();
    expect(spanKey(key('w', {ctrlKey: true}), all, 80, NaN)).toBeNull();
  });
  test('arrows go from part to part, and what they reach comes into sight', () => {
    expect(['ArrowRight', 'ArrowLeft', 'Home', 'End'].map((name) => nextKey(key(name), -1, 5))).toEqual([0, 0, 0, 4]);
    expect(['ArrowRight', 'ArrowLeft', 'Home', 'End'].map((name) => nextKey(key(name), 2, 5))).toEqual([3, 1, 0, 4]);
    expect([nextKey(key('ArrowRight'), 4, 5), nextKey(key('ArrowRight'), -1, 0), nextKey(key('w'), 2, 5), nextKey(key('End', {altKey: true}), 2, 5)]).toEqual([4, null, null, null]);
    expect(sighted({from: 10, to: 30}, 80, 20, 25)).toBeNull();
    expect(sighted({from: 10, to: 30}, 80, 50, 60)).toEqual({from: 45, to: 65});
    expect(sighted({from: 10, to: 30}, 80, 2, 4)).toEqual({from: 0, to: 20});
  });
  test('is in the address, and back; rubbish is all of it', () => {
    expect(writeSpan(all, 80)).toBe('');
    expect(isWhole(all, 80)).toBe(true);
    expect(readSpan(writeSpan({from: 12.5, to: 70.25}, 80), 80)).toEqual({from: 12.5, to: 70.25});
    for (const text of ['', '-', '5', '7-3', 'a-b', '-5-6', '3-']) expect(readSpan(text, 80)).toEqual(all);
    expect(readSpan('70-900', 80)).toEqual({from: 0, to: 80});
  });
});
