import {beforeAll, describe, expect, test, vi} from 'vitest';
import type {Route} from '../src/app/route.svelte';
import type {Account} from '../src/data/api';
import type {Step} from '../src/data/steps.svelte';
import {partsOf, placed} from '../src/fig/life';
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

describe('rates', () => {
  test('are differences of counters by time', async () => {
    const {rates, readCounter} = await import('../src/data/live.svelte');
    const sample = (at: number, prompt: number, output: number) => ({at, prompt, output, running: 1, waiting: 0, kv: 0});
    expect(rates([sample(0, 0, 0), sample(500, 100, 10)])[0]).toMatchObject({prefill: 200, decode: 20});
    // A server that was restarted counts from zero.
    expect(rates([sample(0, 0, 50), sample(500, 0, 1)])).toEqual([]);
    expect(readCounter('\n# HELP a\nvitrine:a_total{model_name="x"} 12.5\nvitrine:a{model_name="x"} 3\n', 'vitrine:a_total')).toBe(12.5);
    expect(readCounter('\n', 'vitrine:a')).toBeNaN();
  });
});

describe('steps', () => {
  test('are merged without doubles, and a restarted server begins anew', async () => {
    const {merged} = await import('../src/data/steps.svelte');
    const list = (...numbers: number[]) => numbers.map((step) => ({step}) as Step);
    const numbers = (steps: Step[]) => steps.map((s) => s.step);
    expect(numbers(merged(list(1, 2), list(2, 3, 5)))).toEqual([1, 2, 3, 5]);
    expect(numbers(merged([], list(7)))).toEqual([7]);
    expect(numbers(merged(list(9000), list(0, 1)))).toEqual([0, 1]);
    expect(numbers(merged(list(4), list()))).toEqual([4]);
    expect(merged(list(...Array(600).keys()), list(600))).toHaveLength(512);
  });
});

describe('pages', () => {
  test('know their holders and how full they are', async () => {
    const {holdings} = await import('../src/data/pages.svelte');
    const map = {
      groups: [{window: 0, page_size: 16, pages: 'uu.c'}],
      tables: [
        {id: 1, slot: 0, group: 0, length: 20, pages: [0, 1]},
        {id: 2, slot: 1, group: 0, length: 16, pages: [0]},
        {id: 3, slot: 2, group: 1, length: 16, pages: [3]},
        {id: 4, slot: 3, group: 0, length: 40, pages: [-1, -1, 1]},
      ],
    };
    const held = holdings(map, 0);
    expect(held.get(0)!.map((h) => [h.table.id, h.index, h.tokens])).toEqual([[1, 0, 16], [2, 0, 16]]);
    expect(held.get(1)!.map((h) => [h.table.id, h.index, h.tokens])).toEqual([[1, 1, 4], [4, 2, 8]]);
    expect(held.has(3)).toBe(false);
  });
});

describe('an answer', () => {
  test('joins tokens that end inside a character', async () => {
    const {joined} = await import('../src/data/conversation.svelte');
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
