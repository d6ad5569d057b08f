// What a KV cache takes: exact arithmetic on shapes.
import type {Info} from './api';

export const kTypes = {f32: 4, f16: 2, bf16: 2, 'q8, f8': 1} as const; // bytes of a value, without scales
export type KvType = keyof typeof kTypes;

export interface Shape {
  layers: number;
  heads: number; // of queries
  kvHeads: number;
  width: number; // values of a key, and of a value
  type: KvType;
}
// A key and a value for every KV head of every layer.
export const tokenBytes = (s: Shape): number => 2 * s.layers * s.kvHeads * s.width * kTypes[s.type];

// The shapes that explanations of the cache use. The last two are one model, without and with shared heads.
export const kShapes: {name: string; shape: Shape; context: number}[] = [
  {name: '32 layers, 4,096 wide, every head its own keys', shape: {layers: 32, heads: 32, kvHeads: 32, width: 128, type: 'f16'}, context: 4096},
  {name: '80 layers, as if all 64 heads had keys', shape: {layers: 80, heads: 64, kvHeads: 64, width: 128, type: 'f16'}, context: 4096},
  {name: '80 layers, 64 heads that share 8 keys', shape: {layers: 80, heads: 64, kvHeads: 8, width: 128, type: 'f16'}, context: 4096},
];

// The loaded model's cache, a line for layers that are alike.
export interface CacheLine {
  layers: number;
  kvHeads: number;
  width: number; // of a key and a value together
  bytes: number; // of a number
  positions: number; // of the pool
  product: number; // of all these
  padding: number; // what this machine adds so that rows are read well
}
// Null: the server is older and does not say.
export function cacheLines(info: Info): CacheLine[] | null {
  const bytes = kTypes[info.options.kv_type as KvType];
  const lines: CacheLine[] = [];
  for (const g of info.memory.groups) {
    if (!bytes || g.kv_heads === undefined || g.key_width === undefined || g.value_width === undefined) return null;
    const pages = g.pages + (g.spare_pages ?? 0), positions = pages * info.options.page_size, width = g.key_width + g.value_width;
    const product = g.layers * g.kv_heads * width * bytes * positions;
    lines.push({layers: g.layers, kvHeads: g.kv_heads, width, bytes, positions, product, padding: g.page_bytes * pages - product});
  }
  return lines;
}
export function shapeOf(info: Info): Shape | null {
  const {layers, heads, kv_heads: kvHeads, head_dim: width} = info.model;
  return kvHeads && width && info.options.kv_type in kTypes ? {layers, heads, kvHeads, width, type: info.options.kv_type as KvType} : null;
}

// Pages that a sequence holds in a group: windowed layers give back what they no longer see.
type Group = Info['memory']['groups'][number];
export const pagesOf = (g: Group, pageSize: number, length: number): number => Math.min(g.pages_per_sequence, Math.ceil(length / pageSize));
// Sequences of that length that the pools hold at once, sharing nothing.
export const fitting = (groups: readonly Group[], pageSize: number, length: number): number =>
  groups.length === 0 ? 0 : Math.min(...groups.map((g) => Math.floor(g.pages / Math.max(1, pagesOf(g, pageSize, length)))));

// What sequences take as slabs for the worst case, and as pages.
export interface Room {
  slabs: number; // positions that slabs would reserve
  used: number; // of them, with something in them: what is shared counts in each
  pages: number; // that are held, each once
  taken: number; // their positions
  held: number; // of them, with something in them
}
// By the block tables of one group. Behind a window there is no page: -1.
export function roomOf(tables: readonly {length: number; pages: readonly number[]}[], context: number, pageSize: number): Room {
  const fill = new Map<number, number>();
  let used = 0;
  for (const t of tables) {
    used += t.length;
    t.pages.forEach((page, i) => page >= 0 && fill.set(page, Math.max(fill.get(page) ?? 0, Math.max(0, Math.min(pageSize, t.length - i * pageSize)))));
  }
  return {slabs: tables.length * context, used, pages: fill.size, taken: fill.size * pageSize, held: [...fill.values()].reduce((a, b) => a + b, 0)};
}
// The same for choices of one prompt that have ended: the tables they had, with made-up numbers of pages. Full pages
// of the prompt are everybody's.
export function tablesFor(lengths: readonly number[], prompt: number, pageSize: number): {length: number; pages: number[]}[] {
  const whole = lengths.length > 1 ? Math.floor(prompt / pageSize) : 0;
  let next = whole;
  return lengths.map((length) => ({length, pages: Array.from({length: Math.ceil(length / pageSize)}, (_, i) => (i < whole ? i : next++))}));
}
