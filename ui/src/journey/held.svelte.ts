// Block tables of a request, as the page's worker sees them: while it runs, and the last ones afterwards.
import {engine} from '../data/engine.svelte';
import type {TableJson} from '../data/events';
import type {Account} from '../data/api';

export interface Holding {
  readonly tables: readonly TableJson[]; // of all its choices; empty: never seen, or not for this key
  readonly now: boolean; // it holds them now
}
// For as long as the component lives.
export function holding(accounts: () => readonly Account[]): Holding {
  let last = $state.raw<{label: string; tables: TableJson[]} | null>(null);
  let now = $state(false);
  $effect(() => {
    // A recording, or a pause, of the Engine's view is not now.
    if (engine.mode === 'recorded') engine.close();
    else if (engine.summary?.paused) engine.pause(false);
  });
  $effect(() => engine.watch());
  $effect(() => engine.show(['pages', 'tables']));
  $effect(() => {
    const all = accounts(), label = all[0]?.label ?? '', ids = new Set(all.map((a) => a.id));
    const mine = (engine.summary?.tables ?? []).filter((t) => ids.has(t.id));
    if (mine.length > 0) last = {label, tables: mine};
    now = mine.length > 0;
  });
  return {
    get tables() {
      return last?.label === (accounts()[0]?.label ?? '') ? last.tables : [];
    },
    get now() {
      return now;
    },
  };
}

// Sequences that run, with what they hold: of all that this key may see.
export const running = () => engine.summary?.running ?? [];
