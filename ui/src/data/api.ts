// Calls of the server. Errors have the server's own words.
import type {Preset, Sampler} from './truth';

export interface CacheOutcome {
  cached: number;
  possible: number;
  miss: string;
  position: number;
  text: string;
}

export interface StepOfRequest {
  step?: number;
  start_ns: number;
  plan_ms: number;
  forward_ms: number;
  sample_ms: number;
  commit_ms: number;
  prefill_tokens?: number;
  decode_tokens?: number;
  sequences?: number;
  phase: 'prefill' | 'decode';
  first: number;
  tokens: number;
  sampled: boolean;
  end_ns?: number;
  wall_ns?: number; // since the step before
  share_ns?: number; // this request's part of it
  flops?: number; // of its rows
  bytes?: number; // of K and V that its rows read and wrote
  weight_bytes?: number; // its rows' part of the weights that were read
  company?: [number, 'prefill' | 'decode', number][]; // others in it: number, phase, rows; the most rows first
}

// When things happened: nanoseconds since the process began; 0: not yet, or never.
export type Stamps = Record<
  'received' | 'body' | 'taken' | 'parsed' | 'templated' | 'tokenized' | 'compiled' | 'submitted' | 'admitted' | 'first_token' | 'ended' | 'first_write' | 'last_write',
  number
>;
export type LifeKind =
  | 'read' | 'parse' | 'template' | 'tokenize' | 'compile' | 'handoff' | 'queue' | 'prefill' | 'decode'
  | 'sat_out' | 'preempted' | 'paused' | 'between' | 'write';
// A request: its number for operators, else its label; null: another key's.
export type Who = number | string | null;
export interface About {
  reason?: string;
  behind?: Who[];
  by?: Who;
  sum_of?: number; // parts that were too many to keep
  ran?: [Who, number, number, number][]; // meanwhile: whose steps, ns, rows prefilled, rows decoded
}
// Kind, start, length (ns), and what it was about.
export type LifePart = [LifeKind, number, number, About | null];

export interface Account {
  id?: number;
  parent?: number; // of a fork
  label: string;
  tenant: string;
  choice: number;
  priority: number;
  submitted_unix_ms: number;
  prompt_tokens: number;
  completion_tokens: number;
  cached_tokens: number;
  queue_ms: number;
  ttft_ms: number;
  prefill_ms: number;
  decode_ms: number;
  total_ms: number;
  age_ms?: number; // while it is not ended
  prefill_tok_s: number;
  decode_tok_s: number;
  prefill_steps: number;
  decode_steps: number;
  steps: number;
  pages: number;
  preemptions: number;
  recomputed_tokens: number;
  flops: number;
  kv_read_bytes: number;
  kv_write_bytes: number;
  weight_bytes?: number;
  batch_mean?: number;
  batch_max?: number;
  cache: CacheOutcome;
  queue?: {reason: 'none' | 'seats' | 'pages' | 'policy'; first_ms: number; needed?: number; available?: number};
  stamps?: Stamps;
  bytes_out?: number;
  life?: LifePart[];
  why?: string[];
  shares?: {input_ns: number; cached_ns: number; output_ns: number; wasted_ns: number};
  written?: boolean; // once it has ended: nothing of its answer is still to go out
  state: string;
  finish_reason?: string;
  records?: StepOfRequest[];
  recorded?: boolean; // the server keeps its tokens
}

export interface Pool {
  window: number;
  page_size: number;
  total: number;
  free: number;
  cached: number;
  used: number;
  shared: number;
  tokens: number;
  page_bytes: number;
  waste: number;
}

// Why the first of the queue was not admitted.
export interface Blocked {
  reason: 'seats' | 'pages' | 'policy';
  id: number;
  needed?: number;
  available?: number;
}

export interface Snapshot {
  uptime_s: number;
  policy: string;
  max_sequences: number;
  step_tokens: number;
  max_queue: number;
  context: number;
  num_running: number;
  num_waiting: number;
  running: Account[];
  waiting: Account[];
  step?: number;
  pools?: Pool[];
  blocked?: Blocked | null;
}

export interface Peaks {
  gflop_s: number; // arithmetic
  read_gb_s: number; // reading from memory
}

export interface Info {
  version: string;
  started_unix: number;
  model: {name: string; arch: string; layers: number; dim: number; heads: number; kv_heads?: number; head_dim?: number; vocab: number; context: number};
  tokenizer: {kind: string; vocab: number} | null;
  chat: {template: string; tool_calls: string | null; reasoning: string} | null;
  backend: {name: string; description: string};
  limits: Record<string, number> & {context: number; sequences: number; step_tokens: number; queue: number; top_logprobs: number};
  options: {policy: string; page_size: number; kv_type: string; share_cache: boolean};
  record?: {mode: 'asked' | 'all' | 'none'}; // whose texts are kept
  samplers?: Sampler[]; // in their default order
  presets?: Preset[];
  peaks?: Peaks | null; // of the machine, once somebody has measured them
  embeddings: {dimensions: number; pooling: string};
  sampling_defaults: Record<string, number>;
  memory: {
    file_bytes: number;
    packed_bytes: number;
    activation_bytes: number;
    kv_bytes: number;
    kv_bytes_per_token: number;
    total_bytes: number;
    constraint_cache_bytes_most: number;
    tokenizer_cache_bytes_most: number;
    record_bytes_most?: number;
    lives_bytes_most?: number;
    spec_bytes?: number;
    logit_rows_bytes_most?: number;
    trace_bytes?: number;
    groups: {layers: number; window?: number; kv_heads?: number; key_width?: number; value_width?: number; pages: number; spare_pages?: number; pages_per_sequence: number; page_bytes: number}[];
  };
}

export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly code = '',
  ) {
    super(message);
  }
}

const kKey = 'vitrine.key';
let onRefused: () => void = () => {};
export const whenKeyIsNeeded = (f: () => void) => (onRefused = f);
export const apiKey = () => sessionStorage.getItem(kKey) ?? '';
export const setApiKey = (key: string) => (key ? sessionStorage.setItem(kKey, key) : sessionStorage.removeItem(kKey));

export async function call(path: string, body?: unknown, signal?: AbortSignal): Promise<Response> {
  const headers: Record<string, string> = {};
  if (apiKey()) headers['authorization'] = `Bearer ${apiKey()}`;
  if (body !== undefined) headers['content-type'] = 'application/json';
  let response: Response;
  try {
    response = await fetch(path, {
      method: body === undefined ? 'GET' : 'POST',
      headers,
      ...(body === undefined ? {} : {body: JSON.stringify(body)}),
      ...(signal ? {signal} : {}),
      cache: 'no-store',
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError(0, 'The server does not answer. Is it still running?');
  }
  if (response.ok) return response;
  let message = `The server answered ${response.status} ${response.statusText}`.trim(), code = '';
  try {
    const told = (await response.json()) as {error?: {message?: string; code?: string}};
    message = told.error?.message ?? message;
    code = told.error?.code ?? '';
  } catch {
    // Not the API's own error: the status has to do.
  }
  if (response.status === 401) onRefused();
  throw new ApiError(response.status, message, code);
}

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await (await call(path, undefined, signal)).json()) as T;
}
export async function post<T>(path: string, body: unknown, signal?: AbortSignal): Promise<T> {
  return (await (await call(path, body, signal)).json()) as T;
}

export const saidBy = (error: unknown) => (error instanceof Error ? error.message : String(error));
