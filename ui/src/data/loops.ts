// Where a text says again what it has just said, or said before. Of tokens, by their ids or texts.

export interface Repeat {
  first: number; // where it was said
  again: number; // where the same tokens begin again
  length: number; // how many are the same, from there on
  times: number; // how often it is said in a row; 1: apart from each other
}

const kLeast = 6; // shorter ones are what any language does

// Maximal runs of tokens that are those `period` before, longest first, none inside another.
export function repeats(tokens: readonly (number | string)[], least = kLeast): Repeat[] {
  const found: Repeat[] = [];
  const n = tokens.length;
  for (let period = 1; period < n; ++period) {
    let run = 0;
    for (let i = period; i <= n; ++i) {
      if (i < n && tokens[i] === tokens[i - period]) {
        ++run;
        continue;
      }
      // Apart from each other they have to be longer: some phrases come again in any text.
      if (run >= (run >= period ? least : least + 2))
        found.push({first: i - run - period, again: i - run, length: run, times: run >= period ? 1 + Math.floor(run / period) : 1});
      run = 0;
    }
  }
  found.sort((a, b) => b.length - a.length || a.again - b.again || b.first - a.first);
  const kept: Repeat[] = [];
  for (const r of found)
    if (!kept.some((k) => r.again < k.again + k.length && k.again < r.again + r.length)) kept.push(r);
  return kept.sort((a, b) => a.again - b.again);
}

export interface Penalty {
  name: string;
  values: number[]; // from the mildest
}
export const penalties: Penalty[] = [
  {name: 'repetition_penalty', values: [1.05, 1.1, 1.2, 1.3, 1.5]},
  {name: 'frequency_penalty', values: [0.1, 0.2, 0.5, 1, 2]},
  {name: 'presence_penalty', values: [0.2, 0.5, 1, 2]},
];

// The mildest value that draws another token somewhere in the repeat. `scan` says where a value draws other tokens:
// places in the answer, ascending, each judged on what was said before it.
export interface Cure {
  name: string;
  value: number;
  at: number; // the first token of the repeat that would be another
  before: number; // other tokens that would change before the repeat
}
export async function cure(repeat: Repeat, penalty: Penalty, scan: (values: Record<string, number>) => Promise<number[]>): Promise<Cure | null> {
  for (const value of penalty.values) {
    const places = await scan({[penalty.name]: value});
    const at = places.find((place) => place >= repeat.again && place < repeat.again + repeat.length);
    if (at !== undefined) return {name: penalty.name, value, at, before: places.filter((place) => place < repeat.again).length};
  }
  return null;
}
