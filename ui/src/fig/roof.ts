// Steps under the roof of the machine: arithmetic for each byte, and its speed.
import type {Peaks as Told} from '../data/api';
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
  bytes: number; // a second, from memory
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

// The server's own, by the second.
export const peaksOf = (told: Told | null | undefined): Peaks | null =>
  told ? {flops: told.gflop_s * 1e9, bytes: told.read_gb_s * 1e9} : null;
