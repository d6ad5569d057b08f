// What the server says about itself: asked for twice a second while somebody looks, never while the tab
// is hidden. All views read this one copy.
import {ApiError, get, saidBy, type Info, type Peaks, type Snapshot} from './api';

const kBusyMs = 500, kQuietMs = 2000;

class Live {
  info = $state.raw<Info | null>(null);
  snapshot = $state.raw<Snapshot | null>(null);
  state = $state<'connecting' | 'live' | 'loading' | 'lost' | 'locked'>('connecting');
  trouble = $state('');
  restarted = $state(false);
  heard = performance.now(); // ms: when the server last answered
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

  // What somebody has just measured.
  peaks(peaks: Peaks) {
    if (this.info) this.info = {...this.info, peaks};
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
        this.info = await get<Info>('/api/info');
      }
      this.snapshot = snapshot;
      this.heard = performance.now();
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
}
export const live = new Live();
