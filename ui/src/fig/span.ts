// The part of a request's time that is looked at: milliseconds since its first byte.
export interface Span {
  from: number;
  to: number;
}
const kLeast = 0.001;

export function within({from, to}: Span, whole: number): Span {
  const wide = Math.min(whole, Math.max(kLeast, to - from)), left = Math.max(0, Math.min(whole - wide, from));
  return {from: left, to: left + wide};
}
// By less than 1: closer. What is at `at` stays where it is.
export const zoomed = (s: Span, whole: number, by: number, at: number): Span => within({from: at - (at - s.from) * by, to: at + (s.to - at) * by}, whole);
export const moved = (s: Span, whole: number, by: number): Span => within({from: s.from + by * (s.to - s.from), to: s.to + by * (s.to - s.from)}, whole);
export const isWhole = (s: Span, whole: number): boolean => s.from <= 0 && s.to >= whole;

// In the address; '': all of it.
export function readSpan(text: string, whole: number): Span {
  const [from = NaN, to = NaN] = text.split('-').map((n) => (n === '' ? NaN : Number(n)));
  return from >= 0 && to > from ? within({from, to}, whole) : {from: 0, to: whole};
}
export const writeSpan = (s: Span, whole: number): string => (isWhole(s, whole) ? '' : `${Number(s.from.toFixed(4))}-${Number(s.to.toFixed(4))}`);

// w and s: closer and wider; a and d: earlier and later. `at`: what is chosen, if anything.
export function spanKey(event: KeyboardEvent, s: Span, whole: number, at: number): Span | null {
  if (event.ctrlKey || event.metaKey || event.altKey) return null;
  const about = at >= s.from && at <= s.to ? at : (s.from + s.to) / 2;
  switch (event.key) {
    case 'w': return zoomed(s, whole, 0.5, about);
    case 's': return zoomed(s, whole, 2, about);
    case 'a': return moved(s, whole, -0.25);
    case 'd': return moved(s, whole, 0.25);
    default: return null;
  }
}

// The next of `n` by the arrow keys; `now` below 0: none is chosen yet.
export function nextKey(event: KeyboardEvent, now: number, n: number): number | null {
  const by = {ArrowRight: 1, ArrowLeft: -1, Home: -n, End: n}[event.key];
  if (by === undefined || n === 0 || event.ctrlKey || event.metaKey || event.altKey) return null;
  return Math.max(0, Math.min(n - 1, (now < 0 && by === 1 ? -1 : Math.max(0, now)) + by));
}
// What is chosen by keyboard comes into sight.
export function sighted(s: Span, whole: number, from: number, to: number): Span | null {
  return to <= s.from || from >= s.to ? moved(s, whole, ((from + to) / 2 - (s.from + s.to) / 2) / (s.to - s.from)) : null;
}
