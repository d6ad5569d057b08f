// One reducer: a snapshot and the events after it give the state of the engine. The worker runs it; the
// tests compare its state with the server's own (`GET /api/snapshot?full=1`).
import type {Blocked} from './api';
import {E, endOf, H, kEntry, type BeamChange, type FullSnapshot, type PageChange, type PackedStep, type PagesJson, type TableJson, type TraceEvent} from './events';

export type SequenceState = 'waiting' | 'preempted' | 'prefill' | 'decode' | 'paused';

export interface Sequence {
  req: number;
  label: string;
  tenant: string;
  choice: number;
  parent: number;
  state: SequenceState;
  slot: number; // -1: no seat
  prompt: number;
  prefillEnd: number; // positions to compute before the next token is drawn
  cached: number;
  computed: number; // positions with K and V
  output: number; // tokens drawn
  preemptions: number;
  arrived: number; // ns; NaN: before this page looked
  first: number; // ns of its first token; NaN: none yet, or before this page looked
  last: number; // ns of its last token; NaN: as above
}

// A page's state, as the letters of /api/pages.
export const kFree = 0, kCached = 1, kUsed = 2;
export const letters = '.cu';

export interface PageGroup {
  window: number;
  pageSize: number;
  state: Uint8Array;
  named: Uint8Array; // it has a key: without holders it is cached, not free
  holders: Uint16Array;
  fill: Uint16Array; // positions that hold a token
  used: number; // pages with holders
}

function become(group: PageGroup, page: number, state: number) {
  group.used += Number(state === kUsed) - Number(group.state[page] === kUsed);
  group.state[page] = state;
}

export class State {
  epoch = '';
  seq = 0;
  now = 0; // ns of the newest event
  sequences = new Map<number, Sequence>();
  groups: PageGroup[] = [];
  tables = new Map<number, number[][]>(); // by request, by group; -1: a window has moved on
  blocked: Blocked | null = null;
  policy = '';
  seats = 0;
  stepTokens = 0;
  maxQueue = 0;
  others = {running: 0, waiting: 0}; // of other keys, which are only counted
  lastStep = -1;
  known = false; // there was a snapshot
  // Pages that changed since somebody asked; one list per group.
  dirty: number[][] = [];
  anew = true; // all of them did

  clone(): State {
    const out = new State();
    Object.assign(out, this, {
      sequences: new Map([...this.sequences].map(([req, s]) => [req, {...s}])),
      groups: this.groups.map((g) => ({...g, state: g.state.slice(), named: g.named.slice(), holders: g.holders.slice(), fill: g.fill.slice()})),
      tables: new Map([...this.tables].map(([req, groups]) => [req, groups.map((pages) => [...pages])])),
      others: {...this.others},
      dirty: this.groups.map(() => []),
      anew: true,
    });
    return out;
  }

  // Everything anew.
  load(s: FullSnapshot) {
    const before = this.sequences;
    this.known = true;
    // Steps of before are not missed: nobody looked.
    if (this.lastStep < 0 && s.step) this.lastStep = s.step - 1;
    this.seq = s.seq ?? this.seq;
    if (s.epoch !== undefined) this.epoch = String(s.epoch);
    this.policy = s.policy;
    this.seats = s.max_sequences;
    this.stepTokens = s.step_tokens;
    this.maxQueue = s.max_queue;
    this.blocked = s.blocked ?? null;
    if (s.now_ns !== undefined) this.now = Math.max(this.now, s.now_ns);
    this.others = {running: Math.max(0, s.num_running - s.running.length), waiting: Math.max(0, s.num_waiting - s.waiting.length)};
    this.sequences = new Map();
    for (const a of [...s.running, ...s.waiting] as FullSnapshot['running']) {
      const req = a.id ?? this.sequences.size + 1, kept = before.get(req);
      const table = s.pages?.tables.find((t) => t.id === req);
      this.sequences.set(req, {
        req, label: a.label, tenant: a.tenant, choice: a.choice, parent: kept?.parent ?? 0,
        state: a.state as SequenceState, slot: a.slot ?? table?.slot ?? -1,
        prompt: a.prompt_tokens, prefillEnd: a.prefill_end ?? (a.state === 'prefill' || a.preemptions > 0 ? (a.length ?? a.prompt_tokens) : a.prompt_tokens), cached: a.cached_tokens, computed: a.computed ?? 0, output: a.completion_tokens,
        preemptions: a.preemptions,
        arrived: kept?.arrived ?? (a.age_ms !== undefined && s.now_ns !== undefined ? s.now_ns - a.age_ms * 1e6 : NaN),
        first: kept?.first ?? NaN, last: kept?.last ?? NaN,
      });
    }
    this.loadPages(s.pages);
  }

  private loadPages(pages: PagesJson | undefined) {
    const before = this.groups;
    this.tables = new Map();
    this.groups = (pages?.groups ?? []).map((g) => {
      const n = g.pages.length;
      const group: PageGroup = {
        window: g.window, pageSize: g.page_size,
        state: new Uint8Array(n), named: new Uint8Array(n), holders: new Uint16Array(n), fill: new Uint16Array(n), used: 0,
      };
      for (let i = 0; i < n; ++i) {
        const letter = g.pages[i];
        become(group, i, letter === '.' ? kFree : letter === 'c' ? kCached : kUsed);
        const named = g.named?.[i];
        group.named[i] = Number(letter === 'c' || named === true || named === 1 || named === '1' || named === 'n');
        group.fill[i] = g.fill?.[i] ?? (letter === 'c' ? g.page_size : 0);
        if (g.holders) group.holders[i] = g.holders[i] ?? 0;
      }
      return group;
    });
    for (const t of pages?.tables ?? []) {
      const group = this.groups[t.group];
      if (!group) continue;
      this.tableOf(t.id)[t.group] = [...t.pages];
      t.pages.forEach((page, index) => {
        if (page < 0) return;
        if (!pages!.groups[t.group]!.holders) ++group.holders[page]!;
        group.fill[page] = Math.max(group.fill[page]!, Math.max(0, Math.min(group.pageSize, t.length - index * group.pageSize)));
      });
    }
    // Where the pools are the same ones, only what differs has changed.
    this.dirty = this.groups.map(() => []);
    const same = before.length === this.groups.length && before.every((g, i) => g.state.length === this.groups[i]!.state.length);
    if (!same) this.anew = true;
    else
      this.groups.forEach((g, i) => {
        const old = before[i]!;
        for (let p = 0; p < g.state.length; ++p)
          if (g.state[p] !== old.state[p] || g.holders[p] !== old.holders[p] || g.fill[p] !== old.fill[p]) this.dirty[i]!.push(p);
      });
  }

  private tableOf(req: number): number[][] {
    let table = this.tables.get(req);
    if (!table) this.tables.set(req, (table = this.groups.map(() => [])));
    return table;
  }

  apply(event: TraceEvent) {
    if (event.seq > 0) {
      if (event.seq <= this.seq) return;
      this.seq = event.seq;
    }
    this.now = Math.max(this.now, event.at);
    switch (event.kind) {
      case 'arrive':
        this.sequences.set(event.req, {
          req: event.req, label: event.label, tenant: event.tenant, choice: event.choice, parent: event.parent, state: 'waiting', slot: -1,
          prompt: event.prompt, prefillEnd: event.prompt, cached: 0, computed: 0, output: 0, preemptions: 0, arrived: event.at, first: NaN, last: NaN,
        });
        break;
      case 'plan':
        for (const [req, , , prefillEnd] of event.preempt) {
          const s = this.sequences.get(req);
          if (s) (s.state = 'preempted'), (s.slot = -1), (s.computed = 0), (s.prefillEnd = prefillEnd ?? s.prompt + s.output), ++s.preemptions;
        }
        for (const [req, slot, cached, computed = cached] of event.admit) {
          const s = this.sequences.get(req);
          if (!s) continue;
          if (s.state === 'waiting') s.cached = cached;
          s.slot = slot;
          s.computed = computed;
          s.state = s.computed < s.prefillEnd ? 'prefill' : 'decode';
        }
        this.blocked = event.blocked;
        this.change(event.pages);
        break;
      case 'step':
        this.step(event.step);
        this.beams(event.beams ?? [], event.at);
        this.change(event.pages);
        break;
      case 'end':
        this.sequences.delete(event.req);
        break;
    }
  }

  private step(step: PackedStep) {
    const {entries} = step, end = endOf(step);
    this.lastStep = step.head[H.n]!;
    for (let at = 0; at < entries.length; at += kEntry) {
      const req = entries[at + E.req]!, first = entries[at + E.first]!, rows = entries[at + E.kept]!;
      let s = this.sequences.get(req);
      // A choice that shares a prompt begins with none of it computed.
      const from = Math.min(first, s?.computed ?? first);
      // A recording without a snapshot: it was there before.
      if (!s && !this.known && req > 0) {
        s = {
          req, label: String(req), tenant: '', choice: 0, parent: 0, state: 'decode', slot: 0, prompt: NaN, prefillEnd: 0, cached: 0, computed: 0, output: NaN,
          preemptions: 0, arrived: NaN, first: NaN, last: NaN,
        };
        this.sequences.set(req, s);
      }
      if (s) {
        s.slot = entries[at + E.slot]!;
        s.computed = first + rows;
        s.state = s.computed < s.prefillEnd ? 'prefill' : 'decode';
        if (entries[at + E.drawn]! > 0) {
          s.output += entries[at + E.drawn]!;
          s.last = end;
          if (Number.isNaN(s.first) && s.output === entries[at + E.drawn]) s.first = end;
        }
      }
      const table = this.tables.get(req);
      if (!table || !s) continue;
      for (let g = 0; g < table.length; ++g) {
        const group = this.groups[g]!, pages = table[g]!, size = group.pageSize;
        for (let index = Math.floor(from / size); index * size < first + rows; ++index) {
          const page = pages[index];
          if (page === undefined || page < 0) continue;
          const filled = Math.min(size, first + rows - index * size);
          if (filled > group.fill[page]!) (group.fill[page] = filled), this.dirty[g]!.push(page);
        }
      }
    }
  }

  private beams(changes: readonly BeamChange[], at: number) {
    for (const [req, , computed, prefillEnd, output] of changes) {
      const s = this.sequences.get(req);
      if (!s) continue;
      if (output > s.output) {
        s.last = at;
        if (Number.isNaN(s.first) && s.output === 0) s.first = at;
      }
      s.computed = computed;
      s.prefillEnd = prefillEnd;
      s.output = output;
      s.state = s.computed < s.prefillEnd ? 'prefill' : 'decode';
    }
  }

  // What those that hold it now know to be there: a choice that shares a prompt can have the page of its end alone
  // while the step that computes it is not through.
  private refill(g: number, page: number, index: number) {
    const group = this.groups[g]!;
    if (group.named[page]) return;
    let fill = 0;
    for (const [req, table] of this.tables) {
      if (table[g]?.[index] !== page) continue;
      const owner = this.sequences.get(req);
      if (!owner) return; // it has ended, and leaves the page as it is
      fill = Math.max(fill, Math.min(group.pageSize, owner.computed - index * group.pageSize));
    }
    group.fill[page] = fill;
  }

  private change(changes: readonly PageChange[]) {
    for (const [op, g, page, req, index, holders] of changes) {
      const group = this.groups[g];
      if (!group || page < 0 || page >= group.state.length) continue;
      this.dirty[g]!.push(page);
      if (op === 'evict') {
        group.named[page] = group.fill[page] = group.holders[page] = 0;
        become(group, page, kFree);
        continue;
      }
      if (op === 'name') {
        group.named[page] = 1;
        continue;
      }
      group.holders[page] = holders;
      if (op === 'release') {
        const pages = this.tables.get(req)?.[g];
        // A copy may have taken its place already.
        if (pages && pages[index] === page) {
          pages[index] = -1;
          if (holders > 0) this.refill(g, page, index);
          while (pages.length > 0 && pages.at(-1) === -1) pages.pop();
          if (this.tables.get(req)!.every((p) => p.length === 0)) this.tables.delete(req);
        }
        if (holders === 0) {
          become(group, page, group.named[page] ? kCached : kFree);
          if (!group.named[page]) group.fill[page] = 0;
        }
        continue;
      }
      const pages = (this.tableOf(req)[g] ??= []);
      while (pages.length < index) pages.push(-1);
      const before = pages[index];
      if (op === 'take' || op === 'copy') group.named[page] = 0;
      if (op === 'copy' && before !== undefined && before >= 0 && before !== page) {
        group.holders[before] = Math.max(0, group.holders[before]! - 1);
        pages[index] = page;
        this.refill(g, before, index);
        this.refill(g, page, index);
        this.dirty[g]!.push(before);
      } else if (op === 'take') {
        group.fill[page] = 0;
      }
      pages[index] = page;
      become(group, page, kUsed);
    }
  }

  // As /api/pages has them.
  pagesJson(): PagesJson {
    const tables: TableJson[] = [];
    for (const [id, groups] of this.tables) {
      const s = this.sequences.get(id);
      groups.forEach((pages, group) => pages.length && tables.push({id, slot: s?.slot ?? -1, group, length: s?.computed ?? 0, pages: [...pages]}));
    }
    return {
      groups: this.groups.map((g) => ({window: g.window, page_size: g.pageSize, pages: [...g.state].map((state) => letters[state]).join('')})),
      tables,
    };
  }
}

// Of a group: what /api/snapshot says of a pool, counted here.
export function poolOf(group: PageGroup) {
  let free = 0, cached = 0, used = 0, shared = 0, held = 0;
  for (let i = 0; i < group.state.length; ++i) {
    const state = group.state[i];
    if (state === kFree) ++free;
    else if (state === kCached) ++cached;
    else {
      ++used;
      held += group.fill[i]!;
      if (group.holders[i]! > 1) ++shared;
    }
  }
  const positions = used * group.pageSize;
  return {window: group.window, page_size: group.pageSize, total: group.state.length, free, cached, used, shared, waste: positions > 0 ? 1 - held / positions : 0};
}
