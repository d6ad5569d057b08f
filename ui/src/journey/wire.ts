// What this browser's own clock says of one request: its entry of the Resource Timing.
export interface Wire {
  before: number; // ms from asking to the first byte that went out: waiting for a connection, making one
  wait: number; // from there to the first byte that came back
  answer: number; // from there to the last one
}

// Call it before sending; the entry comes after the last byte. Null: the browser keeps none.
export function watchWire(path: string): {entry(): Promise<Wire | null>} {
  const from = performance.now(), found: PerformanceResourceTiming[] = [];
  const watcher = new PerformanceObserver((list) => {
    for (const e of list.getEntries() as PerformanceResourceTiming[]) if (e.startTime >= from && new URL(e.name).pathname === path) found.push(e);
  });
  watcher.observe({type: 'resource'});
  return {
    async entry() {
      for (let tries = 0; tries < 20 && found.length === 0; ++tries) await new Promise((done) => setTimeout(done, 25));
      watcher.disconnect();
      const e = found[0];
      return e ? wireOf(e) : null;
    },
  };
}
export const wireOf = (e: Pick<PerformanceResourceTiming, 'startTime' | 'requestStart' | 'responseStart' | 'responseEnd'>): Wire => ({
  before: e.requestStart - e.startTime,
  wait: e.responseStart - e.requestStart,
  answer: e.responseEnd - e.responseStart,
});
