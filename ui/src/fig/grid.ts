// Geometry of the figures of the engine, without drawing.
import {H, type PackedStep} from '../data/events';

export const kGapColumns = 4;
// Columns that a step takes, with the hatched ones before it where steps were lost.
export const widthOf = (step: PackedStep): number => (step.head[H.lost]! > 0 ? 1 + kGapColumns : 1);

// Of the newest steps those that fit into so many columns.
export function fitting(steps: readonly PackedStep[], columns: number): PackedStep[] {
  let from = steps.length, used = 0;
  while (from > 0 && used + widthOf(steps[from - 1]!) <= columns) used += widthOf(steps[--from]!);
  return steps.slice(from);
}
export const lostIn = (steps: readonly PackedStep[]): number => steps.reduce((sum, s) => sum + s.head[H.lost]!, 0);

// Rows of the grid for so many places: few sizes, so that it seldom has to be drawn anew.
export function rowsFor(places: number): number {
  let rows = 8;
  while (rows < places) rows = (rows & (rows - 1)) === 0 ? rows * 1.5 : (rows / 3) * 4; // 8, 12, 16, 24, 32, ..
  return rows;
}

// Cells of a map of pages: side and columns, so that all fit into width by height.
export function cellsFor(pages: number, width: number, height: number, most: number): {side: number; columns: number; rows: number} {
  let side = Math.max(2, Math.min(most, Math.floor(Math.sqrt((width * height) / Math.max(1, pages)))));
  const rowsAt = (s: number) => Math.ceil(pages / Math.max(1, Math.floor(width / s)));
  while (side > 2 && rowsAt(side) * side > height) --side;
  const columns = Math.max(1, Math.floor(width / side));
  return {side, columns, rows: Math.max(1, Math.ceil(pages / columns))};
}

// A logarithmic axis with whole powers of ten at its ends, at least two of them.
export interface LogScale {
  low: number;
  high: number;
  at(value: number): number; // 0 to 1
  ticks: number[];
}
export function logScale(values: readonly number[]): LogScale {
  const known = values.filter((v) => v > 0 && Number.isFinite(v));
  let low = Math.floor(Math.log10(Math.min(...known, Infinity))), high = Math.ceil(Math.log10(Math.max(...known, 0)));
  if (!Number.isFinite(low) || !Number.isFinite(high)) (low = 0), (high = 2);
  if (high - low < 2) high = low + 2;
  const every = Math.ceil((high - low) / 4), ticks: number[] = [];
  for (let p = low; p <= high; p += every) ticks.push(10 ** p);
  return {low: 10 ** low, high: 10 ** high, ticks, at: (value) => (Math.log10(Math.max(value, 1e-300)) - low) / (high - low)};
}
