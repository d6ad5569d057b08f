import {beforeAll, describe, expect, test, vi} from 'vitest';
import type {Route} from '../src/app/route.svelte';
import type {Account} from '../src/data/api';
import {lifetime, partsOf, placed, spansOf, tpot} from '../src/fig/life';
import {fields, weakest} from '../src/data/provenance';

// What the modules touch of a browser.
beforeAll(() => {
  vi.stubGlobal('location', {hash: ''});
  vi.stubGlobal('addEventListener', () => {});
  vi.stubGlobal('document', {hidden: true, addEventListener: () => {}, documentElement: {dataset: {}}});
  vi.stubGlobal('sessionStorage', {getItem: () => null, setItem: () => {}, removeItem: () => {}});
});

describe('the URL', () => {
  test('says what is selected, and back', async () => {
    const {parseRoute, writeRoute} = await import('../src/app/route.svelte');
    const routes: Route[] = [
      {view: 'ask', argument: '', query: {}},
      {view: 'request', argument: 'req-1/2 ?&', query: {vs: 'a b'}},
      {view: 'engine', argument: '', query: {at: '7'}},
    ];
    for (const route of routes) expect(parseRoute(writeRoute(route))).toEqual(route);
    expect(parseRoute('#/nothing/x').view).toBe('ask');
    expect(parseRoute('').view).toBe('ask');
    expect(parseRoute('#/request/%E0%A4%A').argument).toBe('%E0%A4%A');
  });
});

describe('an answer', () => {
  test('joins tokens that end inside a character', async () => {
    const {joined} = await import('../src/data/format');
    const token = (text: string, bytes: number[] | null) => ({text, bytes, logprob: 0, top: [], at: 0});
    expect(joined([token('a', [97]), token('\ufffd', [0xf0, 0x9f]), token('\ufffd', [0xa6, 0x8a])])).toBe('a🦊');
    expect(joined([token('a', null), token(' b', null)])).toBe('a b');
  });
});

describe('a life', () => {
  const account = {queue_ms: 1, prefill_ms: 20, decode_ms: 30, total_ms: 55, state: 'ended'} as Account;
  test('sums to its total', () => {
    expect(partsOf(account).reduce((sum, part) => sum + part.value, 0)).toBeCloseTo(account.total_ms, 12);
  });
  test('of a list sums to its total, from stamp to stamp, also where it was never drawn from', () => {
    const stamps = {received: 10e6, submitted: 12e6, admitted: 15e6, first_token: 20e6, ended: 40e6, last_write: 41e6};
    const sum = (a: Account) => spansOf(a)!.reduce((all, part) => all + part.value, 0);
    const whole = {...account, stamps} as unknown as Account;
    expect(spansOf(whole)!.map((part) => part.value)).toEqual([2, 3, 5, 20, 1]);
    expect(sum(whole)).toBe(lifetime(whole));
    const refused = {...account, stamps: {...stamps, admitted: 0, first_token: 0}} as unknown as Account;
    expect(spansOf(refused)!.map((part) => part.value)).toEqual([2, 28, 0, 0, 1]);
    expect(sum(refused)).toBe(lifetime(refused));
    const running = {...account, state: 'decode', age_ms: 9, stamps: {received: 10e6, submitted: 12e6, admitted: 15e6, first_token: 0, ended: 0, last_write: 0}} as unknown as Account;
    expect(spansOf(running)!.map((part) => part.value)).toEqual([2, 3, 6, 0, 0]);
    expect(sum(running)).toBe(lifetime(running));
    expect(spansOf(account)).toBeNull();
  });
  test('has a time per token also while it runs', () => {
    const running = {...account, state: 'decode', ttft_ms: 5, age_ms: 25, total_ms: 0, completion_tokens: 11} as Account;
    expect(tpot(running)).toBe(2);
    expect(tpot({...running, state: 'ended', total_ms: 35})).toBe(3);
    expect(tpot({...running, completion_tokens: 1})).toBeUndefined();
  });
  test('places steps after the first', () => {
    const step = {start_ns: 5e6, plan_ms: 1, forward_ms: 2, sample_ms: 3, commit_ms: 4, phase: 'decode' as const, first: 0, tokens: 1, sampled: true};
    expect(placed([step, {...step, start_ns: 8e6}]).map((p) => [p.start, p.ms])).toEqual([[0, 10], [3, 10]]);
  });
});

describe('provenance', () => {
  test('a figure shows the weakest of its inputs', () => {
    expect(weakest(['measured', 'computed'])).toBe('computed');
    expect(weakest(['measured', 'simulated', 'probe'])).toBe('simulated');
    expect(weakest([])).toBe('measured');
  });
  test('every field is drawn somewhere', () => {
    const sources = import.meta.glob<string>('../src/**/*.{ts,svelte}', {query: '?raw', import: 'default', eager: true});
    const text = Object.entries(sources).filter(([file]) => !file.endsWith('provenance.ts')).map(([, code]) => code).join();
    expect(Object.keys(fields).filter((name) => !text.includes(name))).toEqual([]);
  });
  test('every field says what it is', () => {
    for (const [name, field] of Object.entries(fields)) expect(field.help, name).toMatch(/^.{8,}\.$/);
  });
});
