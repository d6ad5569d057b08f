// Another continuation of an answer: a fork, from some token on.
import {saidBy} from './api';
import type {Token, Usage} from './generate';
import {fetchStages, fork, type Changed, type Kept, type KeptToken} from './truth';

export interface Branch {
  label: string; // its request; empty until the server has taken it
  parent: string; // the request that it left
  at: number; // its first own token, counted from the answer's first
  tokens: Token[]; // of the whole answer
  reason: string; // why it ended; empty while it runs
  error: string;
  usage: Usage | null;
}

export const tokenOf = (t: KeptToken): Token => ({text: t.text, bytes: t.bytes, logprob: t.logprob ?? NaN, top: [], at: 0, kind: t.kind});
export const outputOf = (kept: Kept): KeptToken[] => kept.tokens.slice(kept.prompt_tokens);
// With the token that ended it, which was drawn like the others.
export const drawnOf = (kept: Kept): KeptToken[] =>
  kept.stop_token === null ? outputOf(kept) : [...outputOf(kept), {id: kept.stop_token, text: '■', bytes: [], kind: 'output', special: true}];

// The id of an alternative of Ask, which has only its text: that of the same text among the model's best.
export async function idOf(kept: Kept, at: number, text: string, rank: number): Promise<number | null> {
  const told = await fetchStages(kept.label, kept.prompt_tokens + at, {}, 0);
  const top = told.stages[0]?.top ?? [];
  return (top[rank]?.[1] === text ? top[rank] : top.find((c) => c[1] === text))?.[0] ?? null;
}

export interface From {
  kept: Kept; // the parent
  said: readonly Token[]; // its answer, as it is shown
  at: number;
  token?: {id: number; shown: Token}; // forced; none: drawn
  changed?: Changed;
}

// `show` gets the branch as it grows; the last one is returned.
export async function grow(from: From, show: (branch: Branch) => void, signal: AbortSignal): Promise<Branch> {
  let branch: Branch = {label: '', parent: from.kept.label, at: from.at, tokens: [...from.said.slice(0, from.at), ...(from.token ? [from.token.shown] : [])], reason: '', error: '', usage: null};
  const change = (more: Partial<Branch>) => show((branch = {...branch, ...more}));
  change({});
  try {
    await fork(
      from.kept.label,
      {position: from.kept.prompt_tokens + from.at, ...(from.token ? {token: from.token.id} : {}), ...from.changed},
      {
        begun: (label) => change({label}),
        tokens: (tokens) => change({tokens: [...branch.tokens, ...tokens]}),
        ended: (reason) => change({reason}),
        usage: (usage) => change({usage}),
      },
      signal,
    );
  } catch (error) {
    if (signal.aborted) change({reason: 'stopped'});
    else change({error: saidBy(error)});
  }
  return branch;
}
