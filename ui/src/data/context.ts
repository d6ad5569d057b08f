// Whose the tokens of a prompt are, and which of them came from the cache.
import {post} from './api';
import {joined} from './format';
import type {Asked, Kind, Message, Usage} from './generate';
import {apply, Bytes} from './tokens';
import type {Kept} from './truth';

export interface Piece {
  text: string; // for the eye
  message: number | null; // null: the template's
  kind: Extract<Kind, 'input' | 'cached'>;
}

// The tokens of a prompt that was sent; null where the server counts others now. The cache has the beginning.
export async function piecesOf(asked: Asked, usage: Usage, signal?: AbortSignal): Promise<Piece[] | null> {
  const kind = (i: number) => (i < usage.cached ? 'cached' : 'input');
  if (asked.kind === 'raw') {
    const {pieces} = await post<{pieces: string[]}>('/tokenize', {content: asked.prompt, with_pieces: true, add_special: true}, signal);
    return pieces.length === usage.prompt ? pieces.map((text, i) => ({text, message: 0, kind: kind(i)})) : null;
  }
  const {prompt, tokens, token_bytes, token_spans} = await apply(asked.messages, signal);
  if (tokens.length !== usage.prompt) return null;
  const bytes = new Bytes(prompt), out: Piece[] = [];
  for (const span of token_spans)
    for (let i = span.begin; i < span.end; ++i) out.push({text: bytes.shown(...token_bytes[i]!), message: span.message, kind: kind(i)});
  return out;
}

export interface Share {
  message: number | null;
  cached: number;
  input: number;
}
// The template's first, then by message.
export function sharesOf(pieces: readonly Piece[]): Share[] {
  const out = new Map<number | null, Share>();
  for (const {message, kind} of pieces) {
    const share = out.get(message) ?? {message, cached: 0, input: 0};
    ++share[kind];
    out.set(message, share);
  }
  return [...out.values()].sort((a, b) => (a.message ?? -1) - (b.message ?? -1));
}

// A text between what the template writes around messages that alternate, `first` before, `between` after a question
// and after an answer, `last` at the end; null where it is not of that form.
export function alternating(text: string, first: string, between: readonly [string, string], last: string): string[] | null {
  const from = text.indexOf(first);
  if (from < 0 || !text.endsWith(last)) return null;
  let rest = text.slice(from + first.length, last ? -last.length : undefined);
  const out: string[] = [];
  for (;;) {
    const mark = between[out.length % 2]!, at = mark ? rest.indexOf(mark) : -1;
    out.push(at < 0 ? rest : rest.slice(0, at));
    if (at < 0) return out.length % 2 === 1 ? out : null;
    rest = rest.slice(at + mark.length);
  }
}

// The messages of a recorded chat, which the server keeps as tokens. True only where the template makes the very same
// tokens of them again; else null.
export async function messagesOf(kept: Kept, signal?: AbortSignal): Promise<Message[] | null> {
  const tokens = kept.tokens.slice(0, kept.prompt_tokens), marks = ['Qx1q', 'Ax2a', 'Qx3q'] as const;
  const named = (texts: readonly string[]): Message[] => texts.map((content, i) => ({role: i % 2 ? 'assistant' : 'user', content}));
  const apply = (messages: Message[]) => post<{prompt: string; tokens: number[]}>('/apply-template', {messages}, signal);
  const [a = '', b = '', c = '', d = ''] = (await apply(named(marks))).prompt.split(/Qx1q|Ax2a|Qx3q/);
  const texts = alternating(joined(tokens), a, [b, c], d);
  if (!texts) return null;
  const again = (await apply(named(texts))).tokens;
  return again.length === tokens.length && again.every((id, i) => id === tokens[i]!.id) ? named(texts) : null;
}
