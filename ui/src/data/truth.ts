// What the server can tell about a recorded request: its tokens, the stages of each draw on the recorded logits,
// which tokens other parameters would have given, other continuations, and one token at a time.
import {call, get, post} from './api';
import {read, type Kind, type Watcher} from './generate';

export interface SamplerParam {
  name: string;
  neutral: number;
  min: number;
  max: number;
  min_excluded: boolean;
  integer: boolean;
  help: string;
}
export interface Sampler {
  name: string;
  help: string;
  always_runs: boolean;
  params: SamplerParam[];
}
export interface Preset {
  name: string;
  help: string;
  values: Record<string, number>;
}

export interface KeptToken {
  id: number;
  text: string;
  bytes: number[];
  special?: boolean;
  kind: Kind;
  logprob?: number;
  at_ns?: number; // when it was committed, since the process began
}
export interface Kept {
  label: string;
  choice: number;
  state: 'running' | 'ended';
  finish_reason: string | null;
  chat: boolean;
  prompt_tokens: number;
  output_tokens: number;
  begun: number; // tokens of the output that its parent said
  stop_token: number | null; // that ended it, and is not shown
  parent?: number | null; // of a fork; numbers are an operator's
  forks?: number[];
  seed: number;
  sampling: Record<string, unknown> & {samplers: string[]};
  tokens: KeptToken[];
}

// A candidate: id, text, logit, probability.
export type Candidate = [number, string, number, number];
export interface Stage {
  name: string;
  params?: Record<string, number>;
  kept: number;
  mass: number; // of what the stage before had
  entropy: number; // nats
  top: Candidate[];
  rest: {n: number; p: number};
}
// How the draw went for one candidate: the least time wins.
export interface Runner {
  id: number;
  text?: string;
  weight: number; // the integer that p is a share of
  p: number;
  noise: number;
  time: number;
}
export interface Stages {
  position: number;
  exact: boolean;
  same_token: boolean;
  vocab: number;
  seed: number;
  stages: Stage[];
  race?: Runner[];
  drawn: {id: number; text: string; p: number; ends: boolean} | null; // null: nothing may follow
  ends?: string; // why
  draws?: Record<string, number>;
}
// Parameters and order that differ from the request's own; empty: as it was.
export interface Changed {
  sampling?: Record<string, number>;
  samplers?: string[];
}

// Position, the token that was drawn, the one that would be (null: none may), and their probabilities under these
// parameters.
export type Judged = [number, number, number | null, number, number];
export interface Scan {
  first_difference: number | null;
  next: number | null; // where the server left off
  tokens: Judged[]; // all that it looked at
}
export const differences = (scan: Scan): Judged[] => scan.tokens.filter(([, was, now]) => was !== now);
export interface Held {
  state: string;
  output: number;
}

const at = (label: string, what: string) => `/api/requests/${encodeURIComponent(label)}/${what}`;

const of = (choice: number) => (choice > 0 ? `?choice=${choice}` : '');
export const fetchTokens = (label: string, signal?: AbortSignal, choice = 0) => get<Kept>(at(label, 'tokens') + of(choice), signal);
export const fetchStages = (label: string, position: number, changed: Changed, draws: number, signal?: AbortSignal) =>
  post<Stages>(at(label, 'stages'), {position, top: 64, ...changed, ...(draws > 0 ? {draws} : {})}, signal);
export async function fetchScan(label: string, changed: Changed, signal?: AbortSignal): Promise<Scan> {
  const out = await post<Scan>(at(label, 'scan'), changed, signal);
  while (out.next !== null) {
    const more = await post<Scan>(at(label, 'scan'), {...changed, from: out.next}, signal);
    out.tokens.push(...more.tokens);
    out.first_difference ??= more.first_difference;
    out.next = more.next;
  }
  return out;
}
export const hold = (label: string, what: {allow: number} | {release: true}, choice = 0) =>
  post<Held>(at(label, 'hold') + of(choice), what);

// Another continuation from a position of the answer on, streamed as an answer is.
export async function fork(
  label: string,
  from: {position: number; token?: number} & Changed,
  watch: Watcher,
  signal: AbortSignal,
): Promise<void> {
  const start = performance.now();
  await read(await call(at(label, 'fork'), {stream: true, stream_options: {include_usage: true}, logprobs: true, top_logprobs: 10, ...from}, signal), start, watch);
}
