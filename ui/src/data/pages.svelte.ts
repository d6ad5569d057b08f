// Every page of the KV cache and who holds it: asked for once a second while a figure shows it.
import {ApiError, get} from './api';
import {live} from './live.svelte';
import {Poll} from './poll';

export interface BlockTable {
  id: number;
  slot: number;
  group: number;
  length: number; // positions with K and V
  pages: number[]; // -1: a window has moved on
}

export interface PageMap {
  groups: {window: number; page_size: number; pages: string}[];
  tables: BlockTable[];
}

// Of one page: who holds it, and where in their tables.
export interface Holding {
  table: BlockTable;
  index: number;
  tokens: number;
}

export function holdings(map: PageMap, group: number): Map<number, Holding[]> {
  const out = new Map<number, Holding[]>();
  const size = map.groups[group]!.page_size;
  for (const table of map.tables) {
    if (table.group !== group) continue;
    table.pages.forEach((page, index) => {
      if (page < 0) return;
      const list = out.get(page) ?? [];
      list.push({table, index, tokens: Math.max(0, Math.min(size, table.length - index * size))});
      out.set(page, list);
    });
  }
  return out;
}

const kEveryMs = 1000;

class PageFeed {
  map = $state.raw<PageMap | null>(null);
  private poll = new Poll(() => this.ask());
  watch = () => this.poll.watch();

  private async ask(): Promise<number | null> {
    try {
      if (live.snapshot?.pools && !document.hidden) this.map = await get<PageMap>('/api/pages');
    } catch (error) {
      if (error instanceof ApiError && error.status === 403) return null;
    }
    return live.snapshot ? kEveryMs : 100;
  }
}
export const pageFeed = new PageFeed();
