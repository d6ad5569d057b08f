import {describe, expect, test} from 'vitest';
import {Bytes, letters, partsAfter, type Word} from '../src/data/tokens';

const word: Word = {
  begin: 0,
  end: 4,
  way: 'merges',
  start: [[0, 1, 1], [1, 2, 2], [2, 3, 3], [3, 4, 1]],
  merges: [[1, 2, 5, 23], [0, 1, 9, 123], [0, 3, 11, 1231]],
  ids: [1231],
  bytes: [[0, 4]],
};

describe('merges', () => {
  const shown = (done: number) => partsAfter(word, done).map((p) => [p.begin, p.end, p.id, p.fresh]);
  test('go one by one from the start to the tokens', () => {
    expect(shown(0)).toEqual([[0, 1, 1, false], [1, 2, 2, false], [2, 3, 3, false], [3, 4, 1, false]]);
    expect(shown(1)).toEqual([[0, 1, 1, false], [1, 3, 23, true], [3, 4, 1, false]]);
    expect(shown(2)).toEqual([[0, 3, 123, true], [3, 4, 1, false]]);
    expect(shown(3)).toEqual([[0, 4, 1231, true]]);
  });
  test('are none where a word became tokens in another way', () => {
    const other: Word = {begin: 3, end: 9, way: 'matches', ids: [7, 8], bytes: [[3, 5], [5, 9]]};
    expect(partsAfter(other, 5).map((p) => p.id)).toEqual([7, 8]);
  });
});

describe('bytes', () => {
  test('of whole characters are text, of others hexadecimal', () => {
    const bytes = new Bytes('a 🦊');
    expect(bytes.shown(0, 2)).toBe('a·');
    expect(bytes.shown(2, 6)).toBe('🦊');
    expect(bytes.shown(2, 4)).toBe('⟨f0⟩⟨9f⟩');
    expect(bytes.hex(0, 1)).toBe('⟨61⟩');
    expect(new Bytes('\ufeffa').text(0, 4)).toBe('\ufeffa');
  });
});

test('letters are what looks like one', () => {
  expect(letters('e\u0301a')).toEqual(['e\u0301', 'a']);
  expect(letters('👩‍👩‍👧‍👦!')).toEqual(['👩‍👩‍👧‍👦', '!']);
});
