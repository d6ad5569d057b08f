// Canvases in the page's colours, sharp on every screen.

export function colour(name: string): string {
  // light-dark() is only worked out where it is used as a colour.
  const probe = document.createElement('i');
  probe.style.color = `var(--${name})`;
  probe.style.setProperty('forced-color-adjust', 'none');
  document.body.append(probe);
  const out = getComputedStyle(probe).color;
  probe.remove();
  return out;
}

// Calls draw now, and again when the size or the theme changes. Returns what ends that.
export function drawn(canvas: HTMLCanvasElement, draw: (g: CanvasRenderingContext2D, width: number, height: number) => void): () => void {
  const paint = () => {
    const {width, height} = canvas.getBoundingClientRect();
    const scale = devicePixelRatio || 1;
    canvas.width = Math.max(1, Math.round(width * scale));
    canvas.height = Math.max(1, Math.round(height * scale));
    const g = canvas.getContext('2d');
    if (!g) return;
    g.scale(scale, scale);
    g.clearRect(0, 0, width, height);
    draw(g, width, height);
  };
  return redrawn(canvas, paint);
}

function redrawn(canvas: HTMLCanvasElement, paint: () => void): () => void {
  const sizes = new ResizeObserver(paint);
  sizes.observe(canvas);
  const themes = new MutationObserver(paint);
  themes.observe(document.documentElement, {attributeFilter: ['data-theme']});
  const system = matchMedia('(prefers-color-scheme: dark)');
  system.addEventListener('change', paint);
  paint();
  return () => {
    sizes.disconnect();
    themes.disconnect();
    system.removeEventListener('change', paint);
  };
}

// For drawings that change a little and often: `full` draws all of it, in pixels of the screen, when the
// size or the theme changes or it is asked to; in between the caller draws on what is there. How often all
// was drawn is in data-full, for the tests.
export interface Surface {
  g: CanvasRenderingContext2D | null;
  scale: number;
  full(): void;
  stop(): void;
}
export function surface(canvas: HTMLCanvasElement, draw: (g: CanvasRenderingContext2D, width: number, height: number, scale: number) => void): Surface {
  let times = 0;
  const out: Surface = {g: canvas.getContext('2d'), scale: 1, full: () => {}, stop: () => {}};
  out.full = () => {
    const {width, height} = canvas.getBoundingClientRect();
    const scale = devicePixelRatio || 1, wide = Math.max(1, Math.round(width * scale)), high = Math.max(1, Math.round(height * scale));
    if (!out.g) return;
    if (canvas.width !== wide || canvas.height !== high) (canvas.width = wide), (canvas.height = high);
    out.scale = scale;
    out.g.clearRect(0, 0, wide, high);
    canvas.dataset['full'] = String(++times);
    draw(out.g, wide, high, scale);
  };
  out.stop = redrawn(canvas, out.full);
  return out;
}
// A figure that is on the screen, and only then.
export function whileSeen(element: Element, begin: () => () => void): () => void {
  let end: (() => void) | null = null;
  const observer = new IntersectionObserver(([entry]) => {
    const seen = entry?.isIntersecting ?? false;
    if (seen && !end) end = begin();
    else if (!seen && end) end(), (end = null);
  }, {rootMargin: '100px'});
  observer.observe(element);
  return () => {
    observer.disconnect();
    end?.();
  };
}
// A hatch of the colour, over the page's.
export function hatch(g: CanvasRenderingContext2D, ink: string, scale: number): CanvasPattern | string {
  const tile = document.createElement('canvas'), side = Math.max(4, Math.round(6 * scale));
  tile.width = tile.height = side;
  const t = tile.getContext('2d');
  if (!t) return ink;
  t.strokeStyle = ink;
  t.lineWidth = Math.max(1, scale);
  t.beginPath();
  for (const shift of [-side, 0, side]) t.moveTo(shift, side), t.lineTo(shift + side, 0);
  t.stroke();
  return g.createPattern(tile, 'repeat') ?? ink;
}
