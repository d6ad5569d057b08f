// The whole sentences of a growing text from a place on: what a screen reader is told of an answer, piece by piece.
export function sentences(text: string, from: number): {words: string; to: number} {
  let to = from;
  for (const {0: end, index} of text.slice(from).matchAll(/[.!?…。！？]+["'”’»)\]]*(?=\s)|\n+|[。！？]/g)) to = from + index + end.length;
  return {words: text.slice(from, to).trim(), to};
}
