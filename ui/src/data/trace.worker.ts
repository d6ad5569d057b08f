// Reads /api/trace (or asks for what it can where that is refused, or opens a file) and hands the page at
// most one frame per drawing: it sends the next only when the page has drawn the last.
import {decode, decodeLine, endOf, packStep, type FullSnapshot, type Message, type TableJson} from './events';
import {Player} from './player';
import {poolOf, type Sequence} from './reduce';
import {frames} from './sse';
import type {FromWorker, Mode, PagePart, Summary, ToWorker} from './wire';

const scope = self as unknown as {postMessage(message: FromWorker, transfer?: Transferable[]): void; onmessage: ((event: MessageEvent<ToWorker>) => void) | null};

const kSummaryMs = 250, kPollMs = 500, kAgainMs = 15_000, kMostFile = 512 << 20, kLineMost = 64 << 20;
let key = '', watched = false, connected = false, mode: Mode = 'connecting', told = '';
let live = new Player(), file: Player | null = null;
let want = {steps: false, pages: false, tables: false}, pagesSent = false;
let acknowledged = true, changed = true, summaryAt = 0;
let stopper: AbortController | null = null, retry: ReturnType<typeof setTimeout> | undefined, wait = 250;
let clock = {ns: 0, at: 0}; // the server's time and this browser's
let playing: ReturnType<typeof setInterval> | undefined;
let allowed = true; // polling: this key may see steps and pages
const player = () => file ?? live;

function say(next: Mode, message = '', restarted = false) {
  if (next === mode && message === told && !restarted) return;
  mode = next;
  told = message;
  scope.postMessage({type: 'status', mode: file ? 'recorded' : mode, message, restarted, allowed});
  changed = true;
}

// ---- The stream.

const sleep = (ms: number) => new Promise<void>((done) => (retry = setTimeout(done, ms)));
const headers = (): Record<string, string> => (key ? {authorization: `Bearer ${key}`} : {});
async function get<T>(path: string, signal: AbortSignal): Promise<T> {
  const answer = await fetch(path, {headers: headers(), signal, cache: 'no-store'});
  if (!answer.ok) throw Object.assign(new Error(`The server answered ${answer.status}.`), {status: answer.status});
  return (await answer.json()) as T;
}

async function run() {
  stopper?.abort();
  clearTimeout(retry);
  const mine = (stopper = new AbortController());
  let status = 0;
  while (watched && !mine.signal.aborted) {
    try {
      // A server that counts its events has the stream.
      const snapshot = live.seq > 0 ? null : await get<FullSnapshot>('/api/snapshot?full=1', mine.signal);
      status = snapshot && snapshot.seq === undefined ? 404 : await stream(mine.signal, status < 0);
    } catch (error) {
      if (mine.signal.aborted) return;
      status = (error as {status?: number}).status ?? 0;
    }
    if (mine.signal.aborted) return;
    connected = false;
    if (status === 401) return say('locked');
    if (status === 403 || status === 404 || status === 429) {
      await poll(mine.signal, status === 429 ? kAgainMs : Infinity);
      continue;
    }
    if (status < 0) continue; // again, with a snapshot
    say('lost');
    await sleep(wait);
    wait = Math.min(wait * 2, 5000);
  }
}

async function stream(signal: AbortSignal, anew: boolean): Promise<number> {
  const from = anew ? 0 : live.seq;
  const answer = await fetch(`/api/trace${from > 0 ? `?from=${from}` : ''}`, {headers: headers(), signal, cache: 'no-store'});
  if (!answer.ok || !answer.body) return void (await answer.body?.cancel()), answer.status;
  for await (const frame of frames(answer.body)) {
    if (signal.aborted) return 0;
    const message = decode(frame.event, JSON.parse(frame.data) as Record<string, unknown>, Number(frame.id) || 0);
    if (!message) continue;
    wait = 250;
    if (message.kind === 'hello') {
      tick(message.now_ns);
      const before = live.view.epoch;
      if (before !== '' && before !== message.epoch) {
        live.begin(message.epoch);
        say('stream', '', true);
        if (from > 0) return -1; // it may have gone on where another process was
      }
      live.view.epoch = message.epoch;
      say('stream');
    } else {
      take(live, message);
      if (message.kind !== 'gap') connected = true; // nothing of before is still to come
      // Not all of it could be told: begin with what is.
      if (message.kind === 'event' && (message.event.kind === 'plan' || message.event.kind === 'step') && message.event.lost) return -2;
    }
    post();
  }
  return 0;
}

function take(to: Player, message: Message) {
  if (message.kind === 'snapshot') to.snapshot(message.snapshot);
  else if (message.kind === 'event') to.event(message.event);
  if (message.kind === 'event') tick(message.event.at);
  if (message.kind === 'ping') tick(message.now_ns);
  changed = true;
  if (moment >= 0) reach();
}
function tick(ns: number) {
  const at = performance.now();
  if (ns > clock.ns + (at - clock.at) * 1e6 || clock.ns === 0) clock = {ns, at};
}

// ---- Without it: what can be asked for, twice a second.

async function poll(signal: AbortSignal, ms: number) {
  const until = performance.now() + ms;
  let next = -1, uptime = 0;
  while (!signal.aborted && watched && performance.now() < until) {
    try {
      const snapshot = await get<FullSnapshot & {uptime_s: number}>('/api/snapshot?full=1', signal);
      if (snapshot.seq !== undefined && ms === Infinity) return; // another server, which has the stream
      if (snapshot.uptime_s < uptime) (live = new Player()), (next = -1), (clock = {ns: 0, at: 0});
      uptime = snapshot.uptime_s;
      if (allowed) await pollMore(snapshot, signal, next).then((n) => (next = n));
      else live.snapshot({...snapshot, seq: 0});
      connected = true;
      say('poll');
      changed = true;
      post();
    } catch (error) {
      if (signal.aborted) return;
      connected = false;
      if ((error as {status?: number}).status === 401) return say('locked');
      say('lost');
    }
    await sleep(kPollMs);
  }
}
async function pollMore(snapshot: FullSnapshot, signal: AbortSignal, next: number): Promise<number> {
  try {
    const pages = await get<FullSnapshot['pages']>('/api/pages', signal);
    const newest = snapshot.step ?? 0, from = Math.max(next < 0 ? newest - 256 : next, newest - 256, 0);
    const answer = await get<{next: number; steps: Record<string, unknown>[]}>(`/api/steps?from=${from}&limit=256`, signal);
    live.snapshot({...snapshot, seq: 0, ...(pages ? {pages} : {})});
    for (const json of answer.steps) {
      const step = packStep(json), at = endOf(step);
      tick(at);
      live.event({kind: 'step', seq: 0, at, lost: false, step, pages: []});
    }
    live.snapshot({...snapshot, seq: 0, ...(pages ? {pages} : {})});
    return answer.next;
  } catch (error) {
    if ((error as {status?: number}).status !== 403) throw error;
    allowed = false;
    live.snapshot({...snapshot, seq: 0});
    return next;
  }
}

// ---- A file.

async function openFile(source: File) {
  const reading = new Player(true);
  reading.paused = true;
  let lines = 0;
  try {
    if (source.size > kMostFile) throw new Error(`it has ${source.size} bytes, more than ${kMostFile}`);
    const reader = source.stream().pipeThrough(new TextDecoderStream() as unknown as ReadableWritablePair<string, Uint8Array<ArrayBuffer>>).getReader();
    for (let rest = ''; ; ) {
      const {value, done} = await reader.read();
      const parts = (rest + (value ?? '')).split('\n');
      rest = done ? '' : parts.pop()!;
      if (rest.length > kLineMost) throw new Error('a line is too long');
      for (const line of parts) {
        ++lines;
        const message = decodeLine(line);
        if (message?.kind === 'hello') reading.view.epoch = message.epoch;
        else if (message) take(reading, message);
      }
      if (done) break;
    }
    if (reading.span.last === 0) throw new Error('it has no event with a time');
  } catch (error) {
    scope.postMessage({type: 'refused', message: `${source.name} cannot be shown: line ${lines}: ${error instanceof Error ? error.message : String(error)}`});
    return;
  }
  file = reading;
  reading.seek(Infinity);
  changed = true;
  scope.postMessage({type: 'status', mode: 'recorded', message: source.name, restarted: false, allowed});
  summaryAt = 0;
  pagesSent = false;
  post();
}
// A moment that somebody asked for, once it is there.
let moment = -1;
function reach() {
  if (moment < 0 || moment > player().seq) return;
  play(false);
  if (!file) live.paused = true;
  if (!player().seekSeq(moment)) scope.postMessage({type: 'refused', message: 'The moment of this address is no longer kept; this is now.'});
  moment = -1;
  summaryAt = 0;
}
function play(on: boolean) {
  clearInterval(playing);
  playing = undefined;
  const shown = player();
  if (!on || !file) return;
  if (!shown.behind) shown.seek(shown.span.first);
  let at = shown.view.now, before = performance.now();
  playing = setInterval(() => {
    const now = performance.now();
    at += (now - before) * 1e6;
    before = now;
    shown.forward(at);
    changed = true;
    if (!shown.behind) clearInterval(playing), (playing = undefined), (summaryAt = 0);
    post();
  }, 8);
}

// ---- To the page.

const waits = (q: Sequence) => q.state === 'waiting' || q.state === 'preempted';
function summary(): Summary {
  const p = player(), s = p.view, now = s.now;
  const all = [...s.sequences.values()];
  return {
    mode: file ? 'recorded' : mode, epoch: s.epoch, seq: s.seq, now, span: p.span, paused: file ? playing === undefined : p.paused, lost: p.lost,
    policy: s.policy, seats: s.seats, stepTokens: s.stepTokens, maxQueue: s.maxQueue, blocked: s.blocked, others: s.others, known: s.known,
    running: all.filter((q) => !waits(q)).sort((a, b) => a.slot - b.slot),
    waiting: all.filter(waits),
    pools: s.groups.map(poolOf),
    rates: p.meter.rates(now), holes: p.meter.holes, ttft: p.meter.ttft(now), itl: p.meter.itl(now), curve: p.meter.throughput(),
    tables: want.tables ? (s.pagesJson().tables as TableJson[]) : null,
  };
}
function pageParts(): PagePart[] {
  const s = player().view, whole = !pagesSent || s.anew;
  pagesSent = true;
  s.anew = false;
  return s.groups.map((g, i) => {
    const index = whole ? null : Uint32Array.from(new Set(s.dirty[i]));
    const picked = <T extends Uint8Array | Uint16Array>(a: T): T => (index ? (a as Uint16Array).constructor === Uint16Array ? Uint16Array.from(index, (p) => a[p]!) : Uint8Array.from(index, (p) => a[p]!) : a.slice()) as T;
    s.dirty[i]!.length = 0;
    return {window: g.window, pageSize: g.pageSize, total: g.state.length, index, state: picked(g.state), holders: picked(g.holders), fill: picked(g.fill)};
  });
}
function post() {
  if (!acknowledged || !watched || !changed) return;
  const now = performance.now(), p = player(), transfer: Transferable[] = [];
  const frame: FromWorker & {type: 'frame'} = {type: 'frame'};
  if (!file && connected) p.idle(clock.ns + (now - clock.at) * 1e6);
  if (want.steps && (p.reset || p.fresh.length)) {
    frame.steps = p.pack();
    transfer.push(frame.steps.heads.buffer, frame.steps.entries.buffer, frame.steps.counts.buffer);
  }
  if (want.pages && (!pagesSent || p.view.anew || p.view.dirty.some((d) => d.length))) frame.pages = pageParts();
  if (now - summaryAt >= kSummaryMs) (frame.summary = summary()), (summaryAt = now), (changed = false);
  if (!frame.steps && !frame.pages && !frame.summary) return;
  acknowledged = false;
  scope.postMessage(frame, transfer);
}
// What changed since the last frame also goes out when nothing else comes.
setInterval(() => {
  if (mode === 'stream' && !file && !live.paused) changed = true;
  post();
}, kSummaryMs);

scope.onmessage = ({data}) => {
  switch (data.type) {
    case 'watch':
      key = data.key;
      if (data.on === watched && !data.again) return;
      watched = data.on;
      if (!watched) {
        stopper?.abort();
        clearTimeout(retry);
        connected = false;
        play(false);
      } else {
        allowed = true;
        acknowledged = true;
        void run();
        changed = true;
        post();
      }
      return;
    case 'want':
      if (data.want.pages && !want.pages) pagesSent = false;
      if (data.want.steps && !want.steps) player().reset = true;
      want = data.want;
      summaryAt = 0;
      changed = true;
      return post();
    case 'ack':
      acknowledged = true;
      return post();
    case 'pause':
      if (file) play(!data.on);
      else {
        live.paused = data.on;
        if (!data.on) live.forward(Infinity);
      }
      break;
    case 'seek':
      play(false);
      if (!file) live.paused = true;
      player().seek(data.at);
      break;
    case 'moment':
      moment = data.seq;
      reach();
      break;
    case 'file':
      return void openFile(data.file);
    case 'live':
      play(false);
      file = null;
      live.reset = true;
      live.view.anew = true;
      scope.postMessage({type: 'status', mode, message: '', restarted: false, allowed});
      break;
  }
  summaryAt = 0;
  changed = true;
  post();
};
