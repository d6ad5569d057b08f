// One request that streams: tokens with their alternatives, as they arrive.
import {ApiError, call} from './api';
import {events} from './sse';

export interface Alternative {
  text: string;
  bytes: number[] | null;
  logprob: number;
}

export type Kind = 'input' | 'cached' | 'output' | 'reasoning' | 'tool';

export interface Token extends Alternative {
  top: Alternative[];
  at: number; // ms since Send, by this browser
  kind?: Kind; // none: output
  drawn?: boolean; // `at` is by the server's clock, since it came: of what was recorded
}

export interface Usage {
  prompt: number;
  cached: number;
  output: number;
  reasoning: number;
}

export interface Message {
  role: 'system' | 'user' | 'assistant';
  content: string;
}

export interface Settings {
  temperature?: number;
  top_p?: number;
  top_k?: number;
  min_p?: number;
  seed?: number;
  max_tokens?: number;
  [parameter: string]: number | undefined; // what else a preset sets
}

export type Asked = {kind: 'chat'; messages: Message[]} | {kind: 'raw'; prompt: string};

export interface Watcher {
  begun(label: string): void;
  tokens(tokens: Token[]): void;
  said?(text: string): void; // of the answer proper
  ended(reason: string): void;
  usage(usage: Usage): void;
}

interface ChatLogprob {
  token: string;
  logprob: number;
  bytes: number[] | null;
  top_logprobs: {token: string; logprob: number; bytes: number[] | null}[];
}
interface Chunk {
  error?: {message: string};
  choices?: {
    text?: string;
    delta?: {content?: string; reasoning_content?: string; tool_calls?: unknown[]};
    logprobs?: {
      content?: ChatLogprob[];
      tokens?: string[];
      token_logprobs?: number[];
      top_logprobs?: Record<string, number>[];
    } | null;
    finish_reason?: string | null;
  }[];
  usage?: {
    prompt_tokens: number;
    completion_tokens: number;
    prompt_tokens_details?: {cached_tokens?: number};
    completion_tokens_details?: {reasoning_tokens?: number};
  } | null;
}

const kAlternatives = 10;

// What is asked of this server beyond the usual.
export interface Own {
  record?: boolean; // keep the tokens, so that the draw can be looked at again
  allow?: number; // tokens that may be drawn before it waits to be told
}

export function bodyOf(asked: Asked, settings: Settings, own: Own = {}): Record<string, unknown> {
  const common = {...settings, ...(Object.keys(own).length ? {vitrine: own} : {}), stream: true, stream_options: {include_usage: true}};
  return asked.kind === 'chat'
    ? {...common, messages: asked.messages, logprobs: true, top_logprobs: kAlternatives}
    : {...common, prompt: asked.prompt, logprobs: kAlternatives};
}

export async function generate(asked: Asked, settings: Settings, own: Own, watch: Watcher, signal: AbortSignal): Promise<void> {
  const start = performance.now();
  const path = asked.kind === 'chat' ? '/v1/chat/completions' : '/v1/completions';
  await read(await call(path, bodyOf(asked, settings, own), signal), start, watch);
}

// A streamed answer, of this or of another endpoint.
export async function read(response: Response, start: number, watch: Watcher): Promise<void> {
  watch.begun(response.headers.get('x-request-id') ?? '');
  if (!response.body) throw new ApiError(0, 'The server sent no answer.');
  for await (const data of events(response.body)) {
    if (data === '[DONE]') return;
    const chunk = JSON.parse(data) as Chunk;
    if (chunk.error) throw new ApiError(0, chunk.error.message);
    const at = performance.now() - start;
    const choice = chunk.choices?.[0];
    if (choice) {
      const tokens = tokensOf(choice, at);
      if (tokens.length) watch.tokens(tokens);
      const text = choice.delta?.content ?? choice.text;
      if (text) watch.said?.(text);
      if (choice.finish_reason) watch.ended(choice.finish_reason);
    }
    if (chunk.usage)
      watch.usage({
        prompt: chunk.usage.prompt_tokens,
        cached: chunk.usage.prompt_tokens_details?.cached_tokens ?? 0,
        output: chunk.usage.completion_tokens,
        reasoning: chunk.usage.completion_tokens_details?.reasoning_tokens ?? 0,
      });
  }
  throw new ApiError(0, 'The answer was cut off: the server closed the connection.');
}

export function tokensOf(choice: NonNullable<Chunk['choices']>[number], at: number): Token[] {
  const told = choice.logprobs;
  const kind: {kind?: Kind} = choice.delta?.tool_calls ? {kind: 'tool'} : choice.delta?.reasoning_content ? {kind: 'reasoning'} : {};
  if (told?.content)
    return told.content.map((t) => ({
      text: t.token,
      bytes: t.bytes,
      logprob: t.logprob,
      top: t.top_logprobs.map((a) => ({text: a.token, bytes: a.bytes, logprob: a.logprob})),
      at,
      ...kind,
    }));
  if (told?.tokens)
    return told.tokens.map((text, i) => ({
      text,
      bytes: null,
      logprob: told.token_logprobs?.[i] ?? NaN,
      top: Object.entries(told.top_logprobs?.[i] ?? {})
        .map(([t, logprob]) => ({text: t, bytes: null, logprob}))
        .sort((a, b) => b.logprob - a.logprob),
      at,
    }));
  return [];
}
