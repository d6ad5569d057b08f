// Why a part of a life was as it was, and what the way to the first token was made of.
import type {Account, LifeKind, LifePart, StepOfRequest, Who} from '../data/api';
import {kindName, kindsOf, zeroOf} from './life';
import type {Piece} from './Say.svelte';

const reasons: Record<string, string> = {
  step: 'until the step at work had ended',
  behind: 'behind others in the queue',
  seats: 'for a seat',
  pages: 'for pages',
  policy: 'for its batch: the policy is static',
  prompt: 'while its first choice computed the prompt',
  budget: 'the step had no room for its rows',
  host: 'the host drew its token',
  beams: 'the other beams of its request were not as far, or it had no text',
  reader: 'its reader was behind',
  held: 'its reader held it',
  again: 'what a preemption had dropped, computed again',
  worker: 'it waited for a worker',
  engine: 'from the worker to the queue',
};
export function causeOf([kind, , , about]: LifePart): Piece[] {
  if (!about) return [];
  if (about.sum_of) return ['a sum: its parts were too many to keep'];
  if (about.reason === 'behind' && about.behind) return ['behind ', {who: about.behind[0] ?? null}];
  if (about.by !== undefined) return ['by ', {who: about.by}];
  if (kind === 'sat_out' && about.reason === 'pages') return ['there was no page for its rows'];
  return about.reason ? [reasons[about.reason] ?? about.reason] : [];
}
// With those who ran meanwhile.
export function reasonOf(p: LifePart): Piece[] {
  const out = causeOf(p);
  (p[3]?.ran ?? []).forEach(([who, ns, prefilled, decoded], i) => {
    out.push(i > 0 ? ', ' : out.length > 0 ? '; meanwhile ' : 'meanwhile ', {who}, ': ', ['life.ran', ns / 1e6], ' for ', ['life.rows', prefilled + decoded]);
    const rows = prefilled + decoded === 1 ? ' row' : ' rows';
    out.push(prefilled === 0 ? `${rows} of decode` : decoded === 0 ? `${rows} of prefill` : rows);
  });
  return out;
}
export const whoSays = (who: Who): string => (who === null ? 'another key’s request' : `request ${who}`);
export const causeSays = (p: LifePart): string => causeOf(p).map((x) => (typeof x === 'string' ? x : 'who' in x ? whoSays(x.who) : '')).join('');

// The way to the first token: nanoseconds by kind, which sum to it; null: there is none, or parts before it are
// kept as sums only.
export function firstOf(a: Account): {ns: number; kinds: [LifeKind, number][]} | null {
  const zero = zeroOf(a), first = a.stamps?.first_token ?? 0;
  if (!a.life || first <= zero) return null;
  const before = a.life.filter(([, start]) => start < first);
  if (before.some((p) => p[3]?.sum_of)) return null;
  const kinds = [...kindsOf(before.map(([kind, start, ns]): LifePart => [kind, start, Math.min(ns, first - start), null]))];
  return {ns: first - zero, kinds};
}
// In milliseconds with as many decimals as make about three digits. Who has the largest remainders is rounded up,
// so that what is shown sums to what is shown.
export function rounded(parts: readonly number[]): {places: number; total: number; parts: number[]} {
  const sum = parts.reduce((all, ns) => all + ns, 0);
  const places = Math.max(0, Math.min(3, 8 - Math.floor(Math.log10(Math.max(1, sum))))), unit = 10 ** (6 - places);
  const whole = Math.round(sum / unit), units = parts.map((ns) => Math.floor(ns / unit));
  const order = parts.map((ns, i) => [ns / unit - units[i]!, i] as const).sort((x, y) => y[0] - x[0]);
  for (let left = whole - units.reduce((all, n) => all + n, 0), i = 0; left > 0; --left, ++i) ++units[order[i]![1]]!;
  const ms = (n: number) => n / 10 ** places;
  return {places, total: ms(whole), parts: units.map(ms)};
}

// "To its first token 61.8 ms = queue 4.1 + prefill 57.7"
export function wayOf(a: Account): Piece[] {
  const way = firstOf(a);
  if (!way) return [];
  const {places, total, parts} = rounded(way.kinds.map(([, ns]) => ns));
  const out: Piece[] = ['To its first token ', ['life.first', total, false, places]];
  way.kinds.forEach(([kind], i) => {
    if (parts[i]! > 0) out.push(`${out.length > 2 ? ' +' : ' ='} ${kindName(kind)} `, ['life.first', parts[i], true, places]);
  });
  return out;
}

// Who else was in a step, and with how many rows where that matters.
export const companyOf = (s: StepOfRequest, most = Infinity): Piece[] => [
  ...(s.company ?? []).slice(0, most).flatMap(([who, phase, rows], i): Piece[] => [i > 0 ? ' · ' : '', {who, bare: true}, ` ${phase}`, ...(phase === 'prefill' ? [' ', ['step.all_rows', rows] as Piece] : [])]),
  (s.company?.length ?? 0) > most ? ' …' : '',
];
