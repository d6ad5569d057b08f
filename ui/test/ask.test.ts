import {beforeAll, describe, expect, test, vi} from 'vitest';
import type {Account} from '../src/data/api';
import {alternating, sharesOf, type Piece} from '../src/data/context';
import {tokensOf} from '../src/data/generate';
import {sentences} from '../src/data/sentences';
import {readSetup, writeSetup} from '../src/data/stages';
import {stationsOf} from '../src/fig/stations';

beforeAll(() => {
  vi.stubGlobal('sessionStorage', {getItem: () => null, setItem: () => {}, removeItem: () => {}});
});

describe('sentences', () => {
  test('are told when they are whole, each once', () => {
    const text = 'A fox. It "ran!" Then at 3.14 it s';
    const first = sentences(text, 0);
    expect(first.words).toBe('A fox. It "ran!"');
    expect(sentences(text, first.to)).toEqual({words: '', to: first.to});
    expect(sentences(`${text}lept. `, first.to).words).toBe('Then at 3.14 it slept.');
  });
  test('end with a line, and in other scripts', () => {
    expect(sentences('a list\nb', 0)).toEqual({words: 'a list', to: 7});
    expect(sentences('你好。再', 0).words).toBe('你好。');
    expect(sentences('', 0)).toEqual({words: '', to: 0});
  });
});

describe('a recorded prompt', () => {
  const cut = (text: string) => alternating(text, '<u>', ['</u><a>', '</a><u>'], '</u><a>');
  test('is the messages between what the template writes', () => {
    expect(cut('<u>one</u><a>two</a><u>three</u><a>')).toEqual(['one', 'two', 'three']);
    expect(cut('<s><u>one</u><a>')).toEqual(['one']);
    expect(cut('<u></u><a>')).toEqual(['']);
  });
  test('of another form is none', () => {
    expect(cut('one')).toBeNull();
    expect(cut('<u>one</u>')).toBeNull();
    expect(cut('<u>one</u><a>two</u><a>')).toBeNull();
    expect(alternating('ab', '', ['', ''], '')).toEqual(['ab']);
  });
  test('has its tokens by message, the template’s first', () => {
    const piece = (message: number | null, kind: Piece['kind']): Piece => ({text: '', message, kind});
    expect(sharesOf([piece(null, 'cached'), piece(0, 'cached'), piece(0, 'input'), piece(null, 'input'), piece(1, 'input')])).toEqual([
      {message: null, cached: 1, input: 1},
      {message: 0, cached: 1, input: 1},
      {message: 1, cached: 0, input: 1},
    ]);
  });
});

test('tokens of reasoning and of calls say so', () => {
  const content = [{token: 'x', logprob: -1, bytes: null, top_logprobs: []}];
  const kind = (delta: Record<string, unknown>) => tokensOf({delta, logprobs: {content}}, 0)[0]!.kind;
  expect(kind({reasoning_content: 'x'})).toBe('reasoning');
  expect(kind({tool_calls: [{}]})).toBe('tool');
  expect(kind({content: 'x'})).toBeUndefined();
});

test('leaving all stages out is written and read again', () => {
  const own = {values: {top_k: 0}, order: ['temperature', 'top_k']};
  const {set, order} = writeSetup(own, {...own, order: []});
  expect(readSetup(own, set, order).order).toEqual([]);
  expect(readSetup(own, '', '').order).toEqual(own.order);
});

describe('stations', () => {
  const step = (first: number, tokens: number, end: number, wall: number) => ({
    start_ns: end - wall, end_ns: end, wall_ns: wall, plan_ms: 1e-6, forward_ms: 6e-6, sample_ms: 2e-6, commit_ms: 0, phase: 'decode' as const, first, tokens, sampled: true,
  });
  const account = {
    stamps: {received: 100},
    life: [['read', 100, 10, null], ['queue', 110, 40, null], ['prefill', 150, 50, null], ['decode', 200, 20, null], ['write', 220, 5, null]],
    records: [step(0, 5, 200, 51), step(5, 1, 210, 10), step(6, 1, 220, 10)],
  } as unknown as Account;
  const sum = (parts: {value: number}[]) => Math.round(1e6 * parts.reduce((all, part) => all + part.value, 0));
  test('sum to the end of the step that drew the token', () => {
    for (const [position, end] of [[5, 200], [6, 210], [7, 220]] as const) expect(sum(stationsOf(account, position)!.parts)).toBe(end - 100);
    expect(stationsOf(account, 7)!.before.map((part) => part.name)).toEqual(['read', 'queue', 'prefill', 'decode']);
    expect(stationsOf(account, 8)).toBeNull();
  });
  test('of a life that was summed up have one part before the step', () => {
    const summed = {...account, life: [['read', 100, 10, null], ['decode', 205, 110, {sum_of: 9}]]} as unknown as Account;
    const told = stationsOf(summed, 7)!;
    expect(told.before.map((part) => part.name)).toEqual(['before its step']);
    expect(sum(told.parts)).toBe(120);
  });
  test('of steps that overlap have the step as a whole', () => {
    const fast = {...account, records: [step(0, 5, 200, 51), step(5, 1, 205, 5)]} as unknown as Account;
    expect(stationsOf(fast, 6)!.within.map((part) => part.name)).toEqual(['its step']);
    expect(sum(stationsOf(fast, 6)!.parts)).toBe(105);
  });
});
