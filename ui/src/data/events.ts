// What the engine tells while it runs: the events of /api/trace and the lines of a `.vtr` file. Steps are
// packed into numbers here, once; nothing behind this file sees their JSON.
import type {Account, Blocked, Pool} from './api';

// A step's columns. Times in nanoseconds of the server's process.
export const H = {
  n: 0, start: 1, wall: 2, plan: 3, forward: 4, sample: 5, commit: 6, wait: 7, device: 8, idle: 9, cache: 10,
  prefill: 11, decode: 12, padding: 13, head: 14, flops: 15, weight: 16, kvRead: 17, kvWrite: 18,
  running: 19, waiting: 20, preempted: 21, lost: 22, paddingShare: 23, from: 24,
} as const;
export const kHead = 25;
// A row of a step: one sequence in it.
export const E = {req: 0, slot: 1, decode: 2, first: 3, rows: 4, sampled: 5, flops: 6, kvRead: 7, kvWrite: 8, share: 9, again: 10, kept: 11, drawn: 12} as const;
export const kEntry = 13;

export interface PackedStep {
  head: Float64Array; // kHead numbers; H.lost: steps missing before this one
  entries: Float64Array; // kEntry numbers each
}
export const endOf = (step: PackedStep): number => step.head[H.from]! + step.head[H.wall]!;
export const sizeOf = (step: PackedStep): number => step.entries.length / kEntry;

export type PageOp = 'take' | 'adopt' | 'share' | 'copy' | 'name' | 'release' | 'evict';
// Operation, group, page, sequence (0: none), place in its block table, holders after it.
export type PageChange = [PageOp, number, number, number, number, number];

// Sequence, the beam whose text it goes on from (0: it has none), positions with K and V, positions to compute before
// its next row is ranked, tokens told to its reader, log probability of its text.
export type BeamChange = [number, number, number, number, number, number];

export interface TableJson {
  id: number;
  slot: number;
  group: number;
  length: number;
  pages: number[];
}
export interface PagesJson {
  // A letter a page: '.' free, 'c' cached, 'u' used. `named`: it has a key, so it is cached when nobody holds it.
  groups: {window: number; page_size: number; pages: string; holders?: number[]; fill?: number[]; named?: string | (boolean | number)[]}[];
  tables: TableJson[];
}
export interface FullSnapshot {
  seq?: number;
  epoch?: string | number;
  now_ns?: number;
  policy: string;
  max_sequences: number;
  step_tokens: number;
  max_queue: number;
  num_running: number;
  num_waiting: number;
  running: (Account & {slot?: number; computed?: number; length?: number; prefill_end?: number})[];
  waiting: (Account & {computed?: number; length?: number; prefill_end?: number})[];
  step?: number;
  blocked?: Blocked | null;
  pools?: Pool[];
  pages?: PagesJson;
}

export type TraceEvent = {seq: number; at: number} & (
  | {kind: 'arrive'; req: number; label: string; tenant: string; choice: number; parent: number; prompt: number; priority: number}
  // lost: not all changes of pages are here.
  | {kind: 'plan'; lost: boolean; admit: [number, number, number, number?][]; preempt: [number, number, number, number?][]; pages: PageChange[]; blocked: Blocked | null}
  | {kind: 'step'; lost: boolean; step: PackedStep; beams?: BeamChange[]; pages: PageChange[]}
  | {kind: 'end'; req: number; reason: string; tokens: number}
  | {kind: 'written'; req: number; first: number; last: number; bytes: number}
);
export type Message =
  | {kind: 'hello'; epoch: string; now_ns: number; now_unix_ns: number; model: string; viewer: {name: string; role: string} | null}
  | {kind: 'snapshot'; snapshot: FullSnapshot}
  | {kind: 'gap'; from: number; to: number}
  | {kind: 'ping'; now_ns: number; dropped: number}
  | {kind: 'event'; event: TraceEvent};

type Json = Record<string, unknown>;
const num = (value: unknown, otherwise = 0): number => (typeof value === 'number' && Number.isFinite(value) ? value : otherwise);
const text = (value: unknown): string => (typeof value === 'string' ? value : typeof value === 'number' ? String(value) : '');
const list = <T>(value: unknown): T[] => (Array.isArray(value) ? (value as T[]) : []);

const blockedOf = (value: unknown): Blocked | null => {
  const told = value as Blocked | null | undefined;
  return told && (told.reason as string) !== 'none' ? told : null;
};

const columns: [number, string][] = [
  [H.start, 'start_ns'], [H.wall, 'wall_ns'], [H.plan, 'plan_ns'], [H.forward, 'forward_ns'], [H.sample, 'sample_ns'],
  [H.commit, 'commit_ns'], [H.wait, 'wait_ns'], [H.device, 'device_ns'], [H.idle, 'device_idle_ns'], [H.cache, 'cache_ns'],
  [H.flops, 'flops'], [H.weight, 'weight_bytes'], [H.kvRead, 'kv_read_bytes'], [H.kvWrite, 'kv_write_bytes'],
  [H.running, 'running'], [H.waiting, 'waiting'], [H.preempted, 'preempted'], [H.paddingShare, 'padding_share_ns'],
  [H.from, 'wall_from_ns'],
];

export function packStep(json: Json): PackedStep {
  const head = new Float64Array(kHead);
  head[H.n] = num(json['n'], num(json['step']));
  for (const [at, name] of columns) head[at] = num(json[name]);
  if (json['wall_from_ns'] === undefined) head[H.from] = head[H.start]!;
  const rows = (json['rows'] ?? {}) as Json;
  head[H.prefill] = num(rows['prefill']);
  head[H.decode] = num(rows['decode']);
  head[H.padding] = num(rows['padding']);
  head[H.head] = num(rows['head']);
  const told = list<unknown[]>(json['entries']);
  const entries = new Float64Array(told.length * kEntry);
  told.forEach((entry, i) => {
    const at = i * kEntry;
    if (entry.length < kEntry) throw new Error(`An entry of step ${head[H.n]} has ${entry.length} columns of ${kEntry}: the server is older than this page.`);
    for (let k = 0; k < kEntry; ++k) {
      const value = entry[k];
      entries[at + k] = k === E.decode ? Number(value !== 'prefill') : k === E.sampled ? Number(Boolean(value)) : num(value);
    }
  });
  return {head, entries};
}

// What a step says about itself, as the API does: for the JSON button.
export function stepJson(step: PackedStep): Json {
  const out: Json = {n: step.head[H.n]};
  for (const [at, name] of columns) out[name] = step.head[at];
  out['rows'] = {prefill: step.head[H.prefill], decode: step.head[H.decode], padding: step.head[H.padding], head: step.head[H.head]};
  out['entries'] = Array.from({length: sizeOf(step)}, (_, i) => {
    const e = [...step.entries.subarray(i * kEntry, (i + 1) * kEntry)];
    return [e[0], e[1], e[2] ? 'decode' : 'prefill', e[3], e[4], e[5] === 1, ...e.slice(6)];
  });
  return out;
}

// `name` and `id` as the stream has them; null for what this page does not know.
export function decode(name: string, json: Json, id = 0): Message | null {
  const seq = num(json['seq'], id);
  switch (name) {
    case 'hello':
      return {
        kind: 'hello', epoch: text(json['epoch']), now_ns: num(json['now_ns']), now_unix_ns: num(json['now_unix_ns']),
        model: text(json['model']), viewer: (json['viewer'] as {name: string; role: string} | undefined) ?? null,
      };
    case 'snapshot':
      return {kind: 'snapshot', snapshot: {...(json as unknown as FullSnapshot), seq}};
    case 'gap':
      return {kind: 'gap', from: num(json['from']), to: num(json['to'])};
    case 'ping':
      return {kind: 'ping', now_ns: num(json['now_ns']), dropped: num(json['dropped'])};
    case 'arrive':
      return {
        kind: 'event',
        event: {
          kind: 'arrive', seq, at: num(json['at_ns']), req: num(json['req']), label: text(json['label']), tenant: text(json['tenant']),
          choice: num(json['choice']), parent: num(json['parent']), prompt: num(json['prompt_tokens']), priority: num(json['priority']),
        },
      };
    case 'plan':
      return {
        kind: 'event',
        event: {
          kind: 'plan', seq, at: num(json['at_ns']), lost: json['lost'] === true, admit: list(json['admit']), preempt: list(json['preempt']), pages: list(json['pages']),
          blocked: blockedOf(json['blocked']),
        },
      };
    case 'step': {
      const step = packStep(json);
      return {kind: 'event', event: {kind: 'step', seq, at: endOf(step), lost: json['lost'] === true, step, beams: list(json['beams']), pages: list(json['pages'])}};
    }
    case 'end': {
      const account = (json['account'] ?? {}) as Json;
      return {kind: 'event', event: {kind: 'end', seq, at: num(json['at_ns']), req: num(json['req']), reason: text(json['reason']), tokens: num(account['completion_tokens'])}};
    }
    case 'written':
      return {
        kind: 'event',
        event: {kind: 'written', seq, at: num(json['at_ns']), req: num(json['req']), first: num(json['first_write_ns']), last: num(json['last_write_ns']), bytes: num(json['bytes_out'])},
      };
    default:
      return null;
  }
}

// A line of a `.vtr` file: {"event": NAME, ...fields} or {"event": NAME, "data": {fields}}.
export function decodeLine(line: string): Message | null {
  if (line.trim() === '') return null;
  const json = JSON.parse(line) as Json;
  const name = json['event'];
  if (typeof name !== 'string') throw new Error('a line without an event’s name');
  const data = json['data'];
  return decode(name, data !== null && typeof data === 'object' ? (data as Json) : json, num(json['id']));
}
