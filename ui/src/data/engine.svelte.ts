// The engine as figures see it: fed by the worker, drawn at most once a frame. Canvases draw from the plain
// arrays here when they are told to (`onFrame`); words and tables follow `summary`, four times a second.
import {apiKey} from './api';
import type {PackedStep} from './events';
import {live} from './live.svelte';
import {kShownSteps, unpack} from './player';
import type {FromWorker, Mode, Summary, ToWorker, Want} from './wire';

export interface PageCells {
  window: number;
  pageSize: number;
  state: Uint8Array;
  holders: Uint16Array;
  fill: Uint16Array;
}
// What a frame brought: the last `added` of the steps are new; of pages those in `dirty`, null: all.
export interface Change {
  added: number;
  reset: boolean;
  pages: boolean;
  dirty: (Uint32Array | null)[];
}
type Part = keyof Want;

class EngineFeed {
  summary = $state.raw<Summary | null>(null);
  mode = $state<Mode>('connecting');
  file = $state(''); // name of the recording that is shown
  refused = $state(''); // why a file was not
  allowed = $state(true);
  steps: PackedStep[] = [];
  stepsSeen = $state(0); // counts up when steps came, four times a second
  heard = performance.now(); // ms: when the last frame came
  groups: PageCells[] = [];
  private worker: Worker | null = null;
  private watchers = 0;
  private parts: Record<Part, number> = {steps: 0, pages: 0, tables: 0};
  private drawers = new Set<(change: Change) => void>();
  private pending: (FromWorker & {type: 'frame'})[] = [];
  private scheduled = false;

  // While a view shows the engine.
  watch(): () => void {
    ++this.watchers;
    if (!this.worker) {
      this.worker = new Worker(new URL('./trace.worker.ts', import.meta.url), {type: 'module', name: 'trace'});
      this.worker.onmessage = (event: MessageEvent<FromWorker>) => this.take(event.data);
      document.addEventListener('visibilitychange', () => this.tellWatch());
    }
    this.tellWatch();
    return () => {
      --this.watchers;
      // A view that comes back at once goes on with the same stream.
      setTimeout(() => this.tellWatch(), 1000);
    };
  }
  // A figure that is on the screen: what it draws from, and how.
  show(parts: Part[], draw?: (change: Change) => void): () => void {
    for (const part of parts) ++this.parts[part];
    if (draw) this.drawers.add(draw);
    this.tellWant();
    return () => {
      for (const part of parts) --this.parts[part];
      if (draw) this.drawers.delete(draw);
      this.tellWant();
    };
  }
  retry() {
    this.tell({type: 'watch', on: this.watchers > 0 && !document.hidden, key: apiKey(), again: true});
  }
  pause(on: boolean) {
    this.tell({type: 'pause', on});
  }
  seek(at: number) {
    this.tell({type: 'seek', at});
  }
  // After the event of this number.
  moment(seq: number) {
    this.refused = '';
    this.tell({type: 'moment', seq});
  }
  open(file: File) {
    this.refused = '';
    this.tell({type: 'file', file});
  }
  close() {
    this.tell({type: 'live'});
  }

  private tell(message: ToWorker) {
    this.worker?.postMessage(message);
  }
  private tellWatch() {
    this.tell({type: 'watch', on: this.watchers > 0 && !document.hidden, key: apiKey()});
  }
  private tellWant() {
    const {steps, pages, tables} = this.parts;
    this.tell({type: 'want', want: {steps: steps > 0, pages: pages > 0, tables: tables > 0}});
  }

  private take(message: FromWorker) {
    if (message.type === 'status') {
      this.mode = message.mode;
      this.allowed = message.allowed;
      this.file = message.mode === 'recorded' ? message.message : '';
      if (message.restarted) live.restarted = true;
    } else if (message.type === 'refused') {
      this.refused = message.message;
    } else {
      this.pending.push(message);
      if (this.scheduled) return;
      this.scheduled = true;
      requestAnimationFrame(() => this.frame());
    }
  }
  private frame() {
    this.scheduled = false;
    this.heard = performance.now();
    const change: Change = {added: 0, reset: false, pages: false, dirty: []};
    for (const message of this.pending.splice(0)) {
      if (message.steps) {
        const more = unpack(message.steps);
        if (message.steps.reset) (this.steps = more), (change.reset = true);
        else this.steps.push(...more);
        change.added += more.length;
        if (this.steps.length > 2 * kShownSteps) this.steps = this.steps.slice(-kShownSteps);
      }
      if (message.pages) {
        change.pages = true;
        this.groups.length = message.pages.length;
        message.pages.forEach((part, i) => {
          change.dirty[i] = part.index;
          if (!part.index) return void (this.groups[i] = {window: part.window, pageSize: part.pageSize, state: part.state, holders: part.holders, fill: part.fill});
          const group = this.groups[i]!;
          part.index.forEach((page, k) => {
            group.state[page] = part.state[k]!;
            group.holders[page] = part.holders[k]!;
            group.fill[page] = part.fill[k]!;
          });
        });
      }
      if (message.summary) (this.summary = message.summary), ++this.stepsSeen;
    }
    for (const draw of this.drawers) draw(change);
    this.tell({type: 'ack'});
  }
}
export const engine = new EngineFeed();
