// The stages of a draw as rows and columns: a row for a candidate, a column for a stage.
import type {Changed, Kept, Sampler, SamplerParam, Stages} from './truth';

export interface Cell {
  p: number; // 0 where it is cut
  logit: number;
  state: 'kept' | 'cut' | 'unknown'; // unknown: among the rest, which is not listed
}
export interface Row {
  id: number;
  text: string;
  drawn: boolean;
  cells: Cell[];
}
export interface Column {
  name: string;
  params: Record<string, number>;
  kept: number;
  mass: number;
  entropy: number;
  rest: {n: number; p: number}; // of what has no row
}
export interface Grid {
  columns: Column[];
  rows: Row[];
}

// The best candidates by the model's logit, those that became the best later, and the one that was drawn. What has no
// row is summed in the rest, so that each column sums to 1.
export function gridOf(told: Stages, most: number): Grid {
  const first = told.stages[0], last = told.stages.at(-1);
  if (!first || !last) return {columns: [], rows: []};
  const rank = new Map<number, number>();
  for (const stage of told.stages) for (const [id] of stage.top) if (!rank.has(id)) rank.set(id, rank.size);
  const chosen = new Map<number, string>();
  const choose = (list: Stages['stages'][number]['top'], n: number) => list.slice(0, n).forEach(([id, text]) => chosen.set(id, text));
  choose(first.top, most);
  choose(last.top, Math.ceil(most / 2));
  const drawn = told.drawn?.id;
  if (told.drawn && !chosen.has(told.drawn.id)) chosen.set(told.drawn.id, told.drawn.text);
  const places = told.stages.map((stage) => new Map(stage.top.map((c) => [c[0], c])));
  const rows = [...chosen]
    .sort(([a], [b]) => (rank.get(a) ?? Infinity) - (rank.get(b) ?? Infinity))
    .map(([id, text]): Row => ({
      id,
      text,
      drawn: id === drawn,
      cells: told.stages.map((stage, i): Cell => {
        const found = places[i]!.get(id);
        if (found) return {p: found[3], logit: found[2], state: 'kept'};
        return {p: 0, logit: NaN, state: stage.rest.n > 0 ? 'unknown' : 'cut'};
      }),
    }));
  const columns = told.stages.map((stage, i): Column => {
    const shown = rows.filter((row) => row.cells[i]!.state === 'kept');
    const others = stage.top.filter(([id]) => !chosen.has(id));
    return {
      name: stage.name,
      params: stage.params ?? {},
      kept: stage.kept,
      mass: stage.mass,
      entropy: stage.entropy,
      rest: {n: stage.kept - shown.length, p: others.reduce((sum, c) => sum + c[3], stage.rest.p)},
    };
  });
  return {columns, rows};
}

// What the reader has set, against what the request had.
export interface Setup {
  values: Record<string, number>;
  order: string[];
}
export const ownSetup = (kept: Kept, samplers: readonly Sampler[]): Setup => ({
  values: Object.fromEntries(samplers.flatMap((s) => s.params).map((p) => [p.name, Number(kept.sampling[p.name] ?? p.neutral)])),
  order: [...kept.sampling.samplers],
});
export function changes(own: Setup, now: Setup): Changed {
  const sampling = Object.fromEntries(Object.entries(now.values).filter(([name, value]) => value !== own.values[name]));
  return {
    ...(Object.keys(sampling).length ? {sampling} : {}),
    ...(own.order.join() !== now.order.join() ? {samplers: now.order} : {}),
  };
}
export const same = (changed: Changed): boolean => !changed.sampling && !changed.samplers;

// In the address: set=temperature:0.5,top_k:40 and order=top_k,temperature; order=none: all are left out.
export function writeSetup(own: Setup, now: Setup): {set: string; order: string} {
  const {sampling = {}, samplers = []} = changes(own, now);
  return {set: Object.entries(sampling).map(([name, value]) => `${name}:${value}`).join(), order: now.order.length ? samplers.join() : 'none'};
}
export function readSetup(own: Setup, set: string, order: string): Setup {
  const values = {...own.values};
  for (const part of set.split(',')) {
    const [name = '', value = ''] = part.split(':');
    if (name in values && value !== '' && Number.isFinite(Number(value))) values[name] = Number(value);
  }
  const names = order.split(',').filter((name, i, all) => own.order.includes(name) && all.indexOf(name) === i);
  return {values, order: names.length || order === 'none' ? names : [...own.order]};
}

export function moved(order: readonly string[], name: string, by: 1 | -1): string[] {
  const from = order.indexOf(name), to = from + by;
  if (from < 0 || to < 0 || to >= order.length) return [...order];
  const out = [...order];
  [out[from], out[to]] = [out[to]!, out[from]!];
  return out;
}

export const sayParam = (name: string): string => {
  const words: Record<string, string> = {top_k: 'Top-k', top_p: 'Top-p', min_p: 'Min-p', typical_p: 'Typical-p'};
  return words[name] ?? (name[0]!.toUpperCase() + name.slice(1)).replaceAll('_', ' ');
};
export const sayStage = (name: string): string => {
  const words: Record<string, string> = {model: 'Model', mask: 'Allowed', forced: 'Forced', logit_bias: 'Bias', frequency_presence: 'Frequency, presence', typical: 'Typical', race: 'Draw'};
  return words[name] ?? sayParam(name);
};

// A slider's positions. Numbers without a useful end get one; counts of tokens go by powers.
export interface Scale {
  min: number;
  max: number;
  step: number;
  of(value: number): number; // position of a value
  at(position: number): number; // value of a position
}
export function scaleOf(param: SamplerParam, vocab: number): Scale {
  if (param.integer && param.max > 1000) {
    const top = Math.max(2, vocab), last = 60;
    return {
      min: 0,
      max: last,
      step: 1,
      of: (value) => (value < 1 ? 0 : Math.min(last, Math.round(1 + ((last - 1) * Math.log(value)) / Math.log(top)))),
      at: (position) => (position < 1 ? 0 : Math.round(top ** ((position - 1) / (last - 1)))),
    };
  }
  const step = param.max - param.min > 1 ? 0.05 : 0.01;
  const max = Math.min(param.max, Math.max(2, param.neutral * 2));
  const min = param.min_excluded ? (param.max > 2 ? 0.5 : step) : param.min;
  return {min, max, step, of: (value) => value, at: (position) => Number(position.toFixed(4))};
}

// How far the counts of draws are from the probabilities, with the cells that are too small put together.
export function chiSquare(draws: Record<string, number>, p: ReadonlyMap<number, number>): {sum: number; freedom: number} {
  const n = Object.values(draws).reduce((all, count) => all + count, 0);
  let sum = 0, cells = 0, restP = 1, restCount = n;
  for (const [id, share] of p) {
    if (share * n < 5) continue;
    const count = draws[id] ?? 0;
    sum += (count - share * n) ** 2 / (share * n);
    ++cells, (restP -= share), (restCount -= count);
  }
  if (restP * n >= 1) (sum += (restCount - restP * n) ** 2 / (restP * n)), ++cells;
  return {sum, freedom: Math.max(0, cells - 1)};
}
