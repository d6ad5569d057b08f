// How a text became tokens, as the server tells it (POST /tokenize with trace), and what it says at each merge.
import {post} from './api';
import {pictured} from './format';

export type Place = [begin: number, end: number, id: number | null]; // bytes of the normalized text

export interface Word {
  begin: number;
  end: number;
  way: 'added' | 'whole' | 'merges' | 'lattice' | 'matches' | 'unknown';
  start?: Place[];
  merges?: [left: number, right: number, rank: number | null, id: number][];
  candidates?: [begin: number, end: number, id: number | null, score: number | null, total: number | null, chosen: boolean][];
  left_out?: number;
  matches?: Place[];
  ids: number[];
  bytes: [number, number][];
}
export interface Told {
  tokens: number[];
  count: number;
  normalized: string;
  prefix: number[];
  suffix: number[];
  words: Word[];
}

export const tell = (content: string, signal?: AbortSignal) => post<Told>('/tokenize', {content, trace: true, add_special: true}, signal);

// A part of a word while its neighbours merge: bytes of the text, and the token they are.
export interface Part {
  begin: number;
  end: number;
  id: number | null;
  fresh: boolean; // made by the last merge
}

// What a word is after its first `done` merges. A merge names its parts by the place of their first symbol.
export function partsAfter(word: Word, done: number): Part[] {
  if (word.way !== 'merges') return word.ids.map((id, i) => ({begin: word.bytes[i]![0], end: word.bytes[i]![1], id, fresh: false}));
  const parts: (Part | null)[] = (word.start ?? []).map(([begin, end, id]) => ({begin, end, id, fresh: false}));
  (word.merges ?? []).slice(0, done).forEach(([left, right, , id], i) => {
    parts[left] = {begin: parts[left]!.begin, end: parts[right]!.end, id, fresh: i === done - 1};
    parts[right] = null;
  });
  return parts.filter((part) => part !== null);
}

// The normalized text by its bytes.
export class Bytes {
  readonly all: Uint8Array;
  constructor(text: string) {
    this.all = new TextEncoder().encode(text);
  }
  // For the eye. Parts of a character are hexadecimal.
  shown(begin: number, end: number): string {
    const part = this.all.subarray(begin, end);
    try {
      return pictured(new TextDecoder('utf-8', {fatal: true, ignoreBOM: true}).decode(part));
    } catch {
      return this.hex(begin, end);
    }
  }
  text(begin: number, end: number): string {
    return new TextDecoder('utf-8', {ignoreBOM: true}).decode(this.all.subarray(begin, end));
  }
  hex(begin: number, end: number): string {
    return [...this.all.subarray(begin, end)].map((b) => `⟨${b.toString(16).padStart(2, '0')}⟩`).join('');
  }
}

// The letters of a text as a reader counts them: what looks like one, is one.
export function letters(text: string): string[] {
  if (!('Segmenter' in Intl)) return [...text];
  return [...new Intl.Segmenter(undefined, {granularity: 'grapheme'}).segment(text)].map((part) => part.segment);
}

// A conversation through the model's template (POST /apply-template with spans).
export type SpanKind = 'template' | 'special' | 'system' | 'user' | 'assistant' | 'tool' | 'other';
export interface Span {
  begin: number;
  end: number;
  message: number | null;
  kind: SpanKind;
}
export interface Applied {
  prompt: string;
  tokens: number[];
  template: string;
  spans: Span[]; // of bytes
  token_spans: Span[]; // of tokens
  token_bytes: [number, number][];
}
export interface Said {
  role: 'system' | 'user' | 'assistant';
  content: string;
}
export const apply = (messages: Said[], signal?: AbortSignal) => post<Applied>('/apply-template', {messages, spans: true}, signal);
