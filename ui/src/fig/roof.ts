// Steps under the roof of the machine: arithmetic for each byte, and its speed.
import {H, type PackedStep} from '../data/events';

export interface Dot {
  n: number;
  prefill: boolean;
  intensity: number; // FLOP for a byte
  rate: number; // FLOP a second
  bytes: number; // bytes a second
}
export interface Peaks {
  flops: number; // a second
  bytes: number; // a second, for a working set of the size of the weights
}

// The time in which the model ran: by the device's clock where there is one.
export function dotOf(step: PackedStep): Dot | null {
  const h = step.head, ns = h[H.device]! > 0 ? h[H.device]! : h[H.forward]! + h[H.sample]!;
  const bytes = h[H.weight]! + h[H.kvRead]! + h[H.kvWrite]!;
  if (ns <= 0 || bytes <= 0 || h[H.flops]! <= 0) return null;
  return {n: h[H.n]!, prefill: h[H.prefill]! > 0, intensity: h[H.flops]! / bytes, rate: (h[H.flops]! / ns) * 1e9, bytes: (bytes / ns) * 1e9};
}
export const roofAt = (peaks: Peaks, intensity: number): number => Math.min(peaks.flops, peaks.bytes * intensity);

// All of them together: their arithmetic and bytes by their time, as shares of the peaks.
export function sharesOf(dots: readonly Dot[], peaks: Peaks | null): {flops: number; bytes: number} | null {
  if (!peaks || dots.length === 0) return null;
  const mean = (f: (d: Dot) => number) => dots.reduce((sum, d) => sum + f(d), 0) / dots.length;
  return {flops: mean((d) => d.rate) / peaks.flops, bytes: mean((d) => d.bytes) / peaks.bytes};
}

// The reply of POST /api/peak: the speed of reading is listed by working set; the one that counts is the
// smallest that holds the weights, or the largest there is.
export function peaksOf(reply: unknown, weights: number): Peaks | null {
  const told = reply as {gflop_s?: number; read_gb_s?: number | [number, number][] | {bytes: number; gb_s: number}[] | Record<string, number>} | null | undefined;
  if (!told || typeof told.gflop_s !== 'number') return null;
  const read = told.read_gb_s;
  if (typeof read === 'number') return {flops: told.gflop_s * 1e9, bytes: read * 1e9};
  if (!read || typeof read !== 'object') return null;
  const list: [number, number][] = Array.isArray(read)
    ? (read as ([number, number] | {bytes: number; gb_s: number})[]).map((r) => (Array.isArray(r) ? r : [r.bytes, r.gb_s]))
    : Object.entries(read).map(([size, speed]) => [Number(size), speed]);
  list.sort((a, b) => a[0] - b[0]);
  const found = list.find(([size]) => size >= weights) ?? list.at(-1);
  return found ? {flops: told.gflop_s * 1e9, bytes: found[1] * 1e9} : null;
}
