// What the server says about itself: asked for twice a second while somebody looks, never while the tab
// is hidden. All views read this one copy.
import {ApiError, call, get, saidBy, type Info, type Snapshot} from './api';

const kBusyMs = 500, kQuietMs = 2000, kKept = 240;

export interface Sample {
  at: number; // ms, this browser's clock
  prompt: number; // counters since the start
  output: number;
  running: number;
  waiting: number;
  kv: number;
}
export interface Rate {
  at: number;
  prefill: number; // tokens a second since the sample before
  decode: number;
  running: number;
  waiting: number;
  kv: number;
}

// Counters of Prometheus's text, by name.
export function readCounter(text: string, name: string): number {
  const at = text.indexOf(`\n${name}{`);
  if (at < 0) return NaN;
  const end = text.indexOf('\n', at + 1);
  return Number(text.slice(at, end < 0 ? undefined : end).split(' ').at(-1));
}

export function rates(samples: readonly Sample[]): Rate[] {
  const out: Rate[] = [];
  for (let i = 1; i < samples.length; ++i) {
    const a = samples[i - 1]!, b = samples[i]!, seconds = (b.at - a.at) / 1000;
    if (seconds <= 0 || b.output < a.output) continue;
    out.push({
      at: b.at,
      prefill: (b.prompt - a.prompt) / seconds,
      decode: (b.output - a.output) / seconds,
      running: b.running,
      waiting: b.waiting,
      kv: b.kv,
    });
  }
  return out;
}

class Live {
  info = $state.raw<Info | null>(null);
  snapshot = $state.raw<Snapshot | null>(null);
  samples = $state.raw<Sample[]>([]);
  metered = $state(true); // false: this key may not read the metrics
  state = $state<'connecting' | 'live' | 'loading' | 'lost' | 'locked'>('connecting');
  trouble = $state('');
  restarted = $state(false);
  private startedBy = Infinity; // ms: the server has started by then
  private watchers = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private asking = false;

  start() {
    document.addEventListener('visibilitychange', () => this.schedule(0));
    this.schedule(0);
  }
  // While it runs, twice a second.
  watch(): () => void {
    ++this.watchers;
    this.schedule(0);
    return () => void --this.watchers;
  }
  // Now, for a key or a setting has changed.
  retry() {
    this.schedule(0);
  }

  private schedule(after: number) {
    clearTimeout(this.timer);
    if (document.hidden) return;
    this.timer = setTimeout(() => void this.ask(), after);
  }

  private async ask() {
    if (this.asking) return;
    this.asking = true;
    try {
      if (!this.info) this.info = await get<Info>('/api/info');
      const sent = performance.now();
      const snapshot = await get<Snapshot>('/api/snapshot');
      // It started between these two. Another server did so later than this one can have.
      const earliest = sent - snapshot.uptime_s * 1000, latest = performance.now() - snapshot.uptime_s * 1000;
      const another = earliest > this.startedBy + 50;
      this.startedBy = another ? latest : Math.min(this.startedBy, latest);
      if (another) {
        this.restarted = true;
        this.samples = [];
        this.info = await get<Info>('/api/info');
      }
      this.snapshot = snapshot;
      await this.meter(snapshot);
      this.state = 'live';
      this.trouble = '';
    } catch (error) {
      this.trouble = saidBy(error);
      if (error instanceof ApiError && error.status === 401) this.state = 'locked';
      else if (error instanceof ApiError && error.status === 503) this.state = 'loading';
      else this.state = 'lost';
    } finally {
      this.asking = false;
      this.schedule(this.watchers > 0 ? kBusyMs : kQuietMs);
    }
  }

  private async meter(snapshot: Snapshot) {
    if (!this.metered || !snapshot.pools) return void (this.metered = Boolean(snapshot.pools));
    const text = '\n' + (await (await call('/metrics')).text());
    const used = snapshot.pools.reduce((sum, pool) => sum + pool.used, 0);
    const total = snapshot.pools.reduce((sum, pool) => sum + pool.total, 0);
    const prompt = readCounter(text, 'vitrine:prompt_tokens_total') - readCounter(text, 'vitrine:prompt_tokens_cached_total');
    const sample = {
      at: performance.now(),
      prompt,
      output: readCounter(text, 'vitrine:generation_tokens_total'),
      running: snapshot.num_running,
      waiting: snapshot.num_waiting,
      kv: total > 0 ? used / total : 0,
    };
    this.samples = [...this.samples.slice(-kKept), sample];
  }
}
export const live = new Live();
