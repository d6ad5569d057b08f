import {beforeAll, describe, expect, test, vi} from 'vitest';
import {bodyOf} from '../src/data/generate';
import {cure, repeats} from '../src/data/loops';
import {changes, chiSquare, gridOf, moved, ownSetup, readSetup, same, scaleOf, writeSetup} from '../src/data/stages';
import type {Kept, Sampler, SamplerParam, Stages} from '../src/data/truth';

beforeAll(() => {
  vi.stubGlobal('sessionStorage', {getItem: () => null, setItem: () => {}, removeItem: () => {}});
});

const letters = (text: string) => [...text];

describe('repeats', () => {
  test('in a row are found with how often they are said', () => {
    const found = repeats(letters('xyz' + 'abcdefgh'.repeat(3) + 'q'));
    expect(found).toEqual([{first: 3, again: 11, length: 16, times: 3}]);
  });
  test('apart from each other too, and short ones are language', () => {
    expect(repeats(letters('abcdefgh-12-abcdefgh'))).toEqual([{first: 0, again: 12, length: 8, times: 1}]);
    expect(repeats(letters('the cat, the dog'))).toEqual([]);
    expect(repeats([])).toEqual([]);
    expect(repeats(letters('aaaaaaaa'))).toEqual([{first: 0, again: 1, length: 7, times: 8}]);
  });
  test('do not lie over each other', () => {
    const found = repeats(letters('abcdefg'.repeat(6) + 'zz' + 'abcdefg'.repeat(2)));
    for (const a of found)
      for (const b of found) if (a !== b) expect(a.again + a.length <= b.again || b.again + b.length <= a.again).toBe(true);
    expect(found[0]).toMatchObject({first: 0, again: 7, length: 35, times: 6});
  });
  test('the mildest value that changes them is the cure', async () => {
    const repeat = {first: 3, again: 11, length: 16, times: 3};
    const asked: number[] = [];
    const scan = async (values: Record<string, number>) => {
      const value = values['p']!;
      asked.push(value);
      return value < 2 ? [40] : [4, 12, 13];
    };
    expect(await cure(repeat, {name: 'p', values: [1, 2, 3]}, scan)).toEqual({name: 'p', value: 2, at: 12, before: 1});
    expect(asked).toEqual([1, 2]);
    expect(await cure(repeat, {name: 'p', values: [1]}, scan)).toBeNull();
  });
});

describe('stages', () => {
  const told: Stages = {
    position: 41, exact: true, same_token: true, vocab: 6, seed: 7,
    stages: [
      {name: 'model', kept: 6, mass: 1, entropy: 1.5, top: [[1, 'a', 3, 0.4], [2, 'b', 2, 0.3], [3, 'c', 1, 0.2]], rest: {n: 3, p: 0.1}},
      {name: 'repetition', kept: 6, mass: 1, entropy: 1.6, top: [[2, 'b', 2, 0.5], [3, 'c', 1, 0.2], [4, 'd', 0, 0.1]], rest: {n: 3, p: 0.2}},
      {name: 'top_k', kept: 2, mass: 0.7, entropy: 0.6, top: [[2, 'b', 2, 0.7], [3, 'c', 1, 0.3]], rest: {n: 0, p: 0}},
    ],
    drawn: {id: 3, text: 'c', p: 0.3, ends: false},
  };
  test('every column sums to one, whatever has a row', () => {
    for (const most of [1, 2, 3, 10]) {
      const grid = gridOf(told, most);
      grid.columns.forEach((column, i) => {
        const sum = grid.rows.reduce((all, row) => all + row.cells[i]!.p, column.rest.p);
        expect(sum).toBeCloseTo(1, 12);
        const kept = grid.rows.filter((row) => row.cells[i]!.state === 'kept').length;
        expect(kept + column.rest.n).toBe(column.kept);
      });
      expect(grid.rows.filter((row) => row.drawn).map((row) => row.id)).toEqual([3]);
    }
  });
  test('rows are by the model’s logit, and what is cut is told from what is not listed', () => {
    const grid = gridOf(told, 3);
    expect(grid.rows.map((row) => row.id)).toEqual([1, 2, 3]);
    expect(grid.rows[0]!.cells.map((cell) => cell.state)).toEqual(['kept', 'unknown', 'cut']);
  });
  test('chi-square is small where counts agree and large where they do not', () => {
    const p = new Map([[1, 0.5], [2, 0.3], [3, 0.2]]);
    expect(chiSquare({1: 500, 2: 300, 3: 200}, p)).toEqual({sum: 0, freedom: 2});
    expect(chiSquare({1: 300, 2: 300, 3: 400}, p).sum).toBeGreaterThan(100);
    // Draws of tokens that are not listed are a cell too.
    expect(chiSquare({1: 500, 9: 500}, new Map([[1, 0.5]]))).toEqual({sum: 0, freedom: 1});
  });
});

describe('what is set', () => {
  const param = (name: string, neutral: number, max = 1, more: Partial<SamplerParam> = {}): SamplerParam => ({name, neutral, min: 0, max, min_excluded: false, integer: false, help: '', ...more});
  const samplers: Sampler[] = [
    {name: 'temperature', help: '', always_runs: false, params: [param('temperature', 1, 2)]},
    {name: 'top_k', help: '', always_runs: false, params: [param('top_k', 0, 2147483647, {integer: true})]},
  ];
  const own = ownSetup({sampling: {temperature: 0.5, top_k: 0, samplers: ['temperature', 'top_k']}} as unknown as Kept, samplers);
  test('is sent only where it differs', () => {
    expect(same(changes(own, own))).toBe(true);
    expect(changes(own, {values: {...own.values, top_k: 3}, order: own.order})).toEqual({sampling: {top_k: 3}});
    expect(changes(own, {...own, order: moved(own.order, 'top_k', -1)})).toEqual({samplers: ['top_k', 'temperature']});
    expect(moved(own.order, 'temperature', -1)).toEqual(own.order);
  });
  test('is in the address, and back', () => {
    const now = {values: {temperature: 0.25, top_k: 7}, order: ['top_k', 'temperature']};
    const written = writeSetup(own, now);
    expect(readSetup(own, written.set, written.order)).toEqual(now);
    expect(readSetup(own, 'nothing:3,temperature:x,top_k:', 'rubbish')).toEqual(own);
    expect(writeSetup(own, own)).toEqual({set: '', order: ''});
  });
  test('sliders have useful ends', () => {
    const k = scaleOf(samplers[1]!.params[0]!, 6144);
    expect(k.at(0)).toBe(0);
    expect(k.at(k.max)).toBe(6144);
    for (const value of [0, 1, 6144]) expect(k.at(k.of(value))).toBe(value);
    expect(scaleOf(param('repetition_penalty', 1, 10, {min_excluded: true}), 10)).toMatchObject({min: 0.5, max: 2});
    expect(scaleOf(param('top_p', 1, 1, {min_excluded: true}), 10)).toMatchObject({min: 0.01, max: 1});
  });
});

describe('a request', () => {
  test('asks to be kept only where that is wanted', () => {
    const asked = {kind: 'raw' as const, prompt: 'x'};
    expect(bodyOf(asked, {})).not.toHaveProperty('vitrine');
    expect(bodyOf(asked, {}, {record: true, allow: 1})).toMatchObject({vitrine: {record: true, allow: 1}});
  });
});
