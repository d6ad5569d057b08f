// Numbers as text. One place, so that a quantity looks the same in every view. Units are separate,
// because they are drawn dimmer.

export type Unit =
  | 'count'
  | 'tokens'
  | 'steps'
  | 'pages'
  | 'ns'
  | 'ms'
  | 's'
  | 'bytes'
  | 'flop'
  | 'share'
  | 'probability'
  | 'logprob'
  | 'tok/s'
  | 'nats'
  | 'number'
  | 'GFLOP/s'
  | 'GB/s'
  | 'FLOP/B'
  | 'GB'
  | 'money'
  | 'plain';

export interface Text {
  digits: string;
  unit: string;
}

const kMinus = '\u2212', kRaised = '\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079';

function grouped(value: number, decimals: number): string {
  const text = value.toFixed(decimals);
  const [whole = '', rest] = text.replace('-', '').split('.');
  const out = whole.replace(/\B(?=(\d{3})+$)/g, ',') + (rest === undefined ? '' : `.${rest}`);
  return value < 0 && Number(text) !== 0 ? kMinus + out : out;
}

// Three digits that matter; whole numbers above that.
export function significant(value: number): string {
  const size = Math.abs(value);
  if (size === 0) return '0';
  if (size >= 99.95) return grouped(value, 0);
  if (size >= 9.995) return grouped(value, 1);
  if (size >= 0.0995) return grouped(value, 2);
  if (size >= 0.00995) return grouped(value, 3);
  if (size >= 0.0005) return grouped(value, 4);
  const [digits, power] = value.toExponential(1).split('e');
  return `${digits!.replace('-', kMinus)} · 10${[...power!].map((c) => ({'-': '\u207b', '+': ''})[c] ?? kRaised[Number(c)]).join('')}`;
}

function scaled(value: number, base: number, names: string[]): Text {
  let at = 0;
  while (Math.abs(value) >= base * 0.9995 && at + 1 < names.length) (value /= base), ++at;
  return {digits: at === 0 ? grouped(value, 0) : significant(value), unit: names[at] ?? ''};
}

export function duration(ms: number): Text {
  const size = Math.abs(ms);
  if (size === 0) return {digits: '0', unit: 'ms'};
  if (size < 0.9995) return {digits: significant(ms * 1000), unit: 'µs'};
  if (size < 999.5) return {digits: significant(ms), unit: 'ms'};
  if (size < 119_500) return {digits: significant(ms / 1000), unit: 's'};
  if (size < 7_170_000) return {digits: significant(ms / 60_000), unit: 'min'};
  return {digits: significant(ms / 3_600_000), unit: 'h'};
}

// Milliseconds with so many decimals: for sums that a reader may check.
export const fixed = (ms: number, places: number): Text => ({digits: grouped(ms, places), unit: 'ms'});

export function write(value: number, unit: Unit): Text {
  if (!Number.isFinite(value)) return {digits: 'unknown', unit: ''};
  switch (unit) {
    case 'ns':
      return {digits: grouped(value, 0), unit: 'ns'};
    case 'ms':
      return duration(value);
    case 's':
      return duration(value * 1000);
    case 'bytes':
      return scaled(value, 1024, ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB']);
    case 'flop':
      return scaled(value, 1000, ['FLOP', 'kFLOP', 'MFLOP', 'GFLOP', 'TFLOP', 'PFLOP']);
    case 'share':
      return {digits: percent(value), unit: '%'};
    case 'probability':
      return {digits: value > 0 && value < 0.0005 ? '<0.001' : value > 0.9995 && value < 1 ? '>0.999' : value.toFixed(3), unit: ''};
    case 'logprob':
      return {digits: grouped(value, 3), unit: ''};
    case 'count':
      return {digits: grouped(value, Number.isInteger(value) ? 0 : 2), unit: ''};
    case 'tokens':
      return {digits: grouped(value, 0), unit: value === 1 ? 'token' : 'tokens'};
    case 'steps':
      return {digits: grouped(value, 0), unit: value === 1 ? 'step' : 'steps'};
    case 'pages':
      return {digits: grouped(value, 0), unit: value === 1 ? 'page' : 'pages'};
    case 'number':
      return {digits: significant(value), unit: ''};
    case 'money':
      return {digits: money(value), unit: ''};
    case 'plain':
      return {digits: String(value), unit: ''};
    default:
      return {digits: significant(value), unit};
  }
}

// In whatever currency; three digits that matter, and never fewer than cents.
function money(value: number): string {
  const size = Math.abs(value);
  if (size === 0 || size >= 1) return grouped(value, 2);
  return grouped(value, Math.min(12, Math.max(2, 2 - Math.floor(Math.log10(size)))));
}

function percent(share: number): string {
  const value = share * 100;
  if (value === 0) return '0';
  if (value < 0.1) return '<0.1';
  if (value > 99.9 && value < 100) return '>99.9';
  return grouped(value, value < 9.95 && !Number.isInteger(value) ? 1 : 0);
}

export const plain = (value: number, unit: Unit): string => {
  const text = write(value, unit);
  return text.unit ? `${text.digits} ${text.unit}` : text.digits;
};

// A token's text for the eye: spaces, line ends and control characters are pictures.
export function pictured(text: string): string {
  return text
    .replace(/ /g, '·')
    .replace(/\n/g, '⏎')
    .replace(/\t/g, '⇥')
    .replace(/\r/g, '␍')
    .replace(/[\u0000-\u001f]/g, (c) => String.fromCharCode(0x2400 + c.charCodeAt(0)))
    .replace(/[\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g, (c) => `⟨${c.charCodeAt(0).toString(16)}⟩`);
}

// Bytes that are not whole UTF-8 on their own: shown as hexadecimal.
export function tokenText(text: string, bytes: number[] | null | undefined): string {
  if (bytes && text.includes('\ufffd')) return bytes.map((b) => `⟨${b.toString(16).padStart(2, '0')}⟩`).join('');
  return pictured(text);
}

// Tokens that end inside a character have their bytes; the others their text.
export function joined(tokens: readonly {text: string; bytes: number[] | null}[]): string {
  if (tokens.every((t) => !t.text.includes('\ufffd') || !t.bytes)) return tokens.map((t) => t.text).join('');
  const encoder = new TextEncoder();
  const bytes: number[] = [];
  for (const t of tokens) bytes.push(...(t.bytes ?? encoder.encode(t.text)));
  return new TextDecoder().decode(new Uint8Array(bytes));
}
