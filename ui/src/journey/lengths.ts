// Prompts of a given number of tokens, from a text of no importance.
import {post, type Info} from '../data/api';

const kText =
  'In the evening the light on the harbour turned from white to amber. Boats came home one after the other, and on the wall the old men counted them, as they had done every day for forty years. ' +
  'A girl sold bread from a basket. When the last sail was in, the lamps along the quay were lit, and somebody in the house above the stairs began to play a slow song on a badly tuned piano. ';

let known: {model: string; ids: number[]} | null = null;
export async function idsOf(info: Info, length: number): Promise<number[]> {
  if (known?.model !== info.model.name) {
    const ids = info.tokenizer ? (await post<{tokens: number[]}>('/tokenize', {content: kText, add_special: false})).tokens : Array.from({length: 97}, (_, i) => (i * 31 + 3) % info.model.vocab);
    known = {model: info.model.name, ids};
  }
  const {ids} = known;
  return Array.from({length}, (_, i) => ids[i % ids.length]!);
}
// So that nothing of it comes from the cache.
export const salt = (): string => crypto.getRandomValues(new Uint32Array(2)).join('.');

// From few to as many as there is room for.
export function lengthsUpTo(most: number): number[] {
  const out: number[] = [];
  for (let n = 32; n < most; n *= 2) {
    out.push(n);
    if (n * 1.5 < most) out.push(n * 1.5);
  }
  return [...out, Math.max(1, most)];
}
