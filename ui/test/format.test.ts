import {describe, expect, test} from 'vitest';
import {duration, pictured, plain, significant, tokenText} from '../src/data/format';

describe('numbers', () => {
  test.each([
    [0, '0'],
    [1, '1.00'],
    [0.1234, '0.12'],
    [0.01234, '0.012'],
    [0.001234, '0.0012'],
    [12.34, '12.3'],
    [99.96, '100'],
    [1234.5, '1,235'],
    [1234567, '1,234,567'],
    [-12.34, '\u221212.3'],
    [0.0000452, '4.5 · 10⁻⁵'],
  ])('%d has three digits that matter', (value, text) => expect(significant(value)).toBe(text));

  test.each([
    [0.0123, '12.3 µs'],
    [0.9996, '1.00 ms'],
    [12.3, '12.3 ms'],
    [999.6, '1.00 s'],
    [60_000, '60.0 s'],
    [180_000, '3.00 min'],
    [7_200_000, '2.00 h'],
  ])('%d ms has the unit that suits it', (ms, text) => {
    const out = duration(ms);
    expect(`${out.digits} ${out.unit}`).toBe(text);
  });

  test('bytes, FLOPs, shares and counts', () => {
    expect(plain(1023, 'bytes')).toBe('1,023 B');
    expect(plain(1536, 'bytes')).toBe('1.50 KiB');
    expect(plain(512, 'bytes')).toBe('512 B');
    expect(plain(2 ** 31, 'bytes')).toBe('2.00 GiB');
    expect(plain(7.65e9, 'flop')).toBe('7.65 GFLOP');
    expect(plain(0.5, 'share')).toBe('50 %');
    expect(plain(0.0004, 'share')).toBe('<0.1 %');
    expect(plain(1, 'tokens')).toBe('1 token');
    expect(plain(2048, 'tokens')).toBe('2,048 tokens');
    expect(plain(NaN, 'tokens')).toBe('unknown');
  });

  test('a probability never rounds to certain or impossible', () => {
    expect(plain(0.99999, 'probability')).toBe('>0.999');
    expect(plain(1e-9, 'probability')).toBe('<0.001');
    expect(plain(1, 'probability')).toBe('1.000');
    expect(plain(0, 'probability')).toBe('0.000');
  });
});

describe('tokens', () => {
  test('what cannot be seen has a picture', () => {
    expect(pictured(' a\n\t')).toBe('·a⏎⇥');
    expect(pictured('\u0000\u001b')).toBe('\u2400\u241b');
    expect(pictured('\u202e')).toBe('⟨202e⟩');
  });
  test('parts of a character are bytes', () => {
    expect(tokenText('\ufffd', [0xf0, 0x9f])).toBe('⟨f0⟩⟨9f⟩');
    expect(tokenText('é', [0xc3, 0xa9])).toBe('é');
  });
});
