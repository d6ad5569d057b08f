// Canvases in the page's colours, sharp on every screen.

export function colour(name: string): string {
  // light-dark() is only worked out where it is used as a colour.
  const probe = document.createElement('i');
  probe.style.color = `var(--${name})`;
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
