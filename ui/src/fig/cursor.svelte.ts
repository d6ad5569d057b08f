// What is chosen in a drawing by keyboard.

// Where a key leads from place `at` of `n`, in a map of columns `across`. null: to none; undefined: another key.
export function moved(event: KeyboardEvent, at: number, n: number, across = 0): number | null | undefined {
  if (n === 0 || event.ctrlKey || event.metaKey || event.altKey) return undefined;
  if (event.key === 'Escape') return null;
  const by: Record<string, number> = {ArrowRight: 1, ArrowLeft: -1, d: 1, a: -1, Home: -n, End: n, ...(across ? {ArrowDown: across, ArrowUp: -across} : {ArrowUp: 1, ArrowDown: -1})};
  if (by[event.key] === undefined) return undefined;
  event.preventDefault();
  return Math.max(0, Math.min(n - 1, at + by[event.key]!));
}

// Words that change often, at most four times a second: for a screen reader.
export function slowly(words: () => string): () => string {
  const kMs = 250;
  let said = $state(''), at = 0;
  $effect(() => {
    const next = words();
    const timer = setTimeout(() => ((said = next), (at = performance.now())), Math.max(0, at + kMs - performance.now()));
    return () => clearTimeout(timer);
  });
  return () => said;
}
