// What was asked and answered in this tab. The server keeps no texts, so a reload finds them here, by
// the name of the request in the URL.
import {get, saidBy, type Account} from './api';
import {grow, idOf, type Branch} from './branch';
import {generate, type Asked, type Message, type Settings, type Token, type Usage} from './generate';
import {live} from './live.svelte';
import {fetchTokens, hold} from './truth';

export interface Turn {
  role: 'user' | 'assistant';
  content: string; // of the user; an answer's text is its tokens'
  tokens: Token[];
  label: string;
  reason: string; // why it ended; empty while it runs
  error: string;
  usage: Usage | null;
  recorded?: boolean; // the server keeps its tokens
  forks?: Branch[];
}

// The server keeps texts of requests that ask for it.
export const records = (): boolean => live.info?.record !== undefined && live.info.record.mode !== 'none';

const kStore = 'vitrine.conversation';
const kMostStored = 2 << 20;

export type Mode = 'chat' | 'raw';

export const textOf = (turn: Turn): string =>
  turn.role === 'user' ? turn.content : joined(turn.tokens);

// Tokens that end inside a character have their bytes; the others their text.
export function joined(tokens: readonly Token[]): string {
  if (tokens.every((t) => !t.text.includes('\ufffd') || !t.bytes)) return tokens.map((t) => t.text).join('');
  const encoder = new TextEncoder();
  const bytes: number[] = [];
  for (const t of tokens) bytes.push(...(t.bytes ?? encoder.encode(t.text)));
  return new TextDecoder().decode(new Uint8Array(bytes));
}

class Conversation {
  mode = $state<Mode>('chat');
  turns = $state.raw<Turn[]>([]);
  settings = $state<Settings>({});
  account = $state.raw<Account | null>(null); // of the last answer, once it has ended
  sending = $state(false);
  stepwise = $state(false); // the next answer begins paused after its first token
  held = $state(false);
  trouble = $state(''); // why a fork or a pause did not work
  private stopper: AbortController | null = null;
  private forking = new Set<AbortController>();

  get label(): string {
    return this.turns.findLast((turn) => turn.label !== '')?.label ?? '';
  }

  asked(typed: string): Asked {
    if (this.mode === 'raw') return {kind: 'raw', prompt: typed};
    const messages: Message[] = this.turns
      .filter((turn) => !turn.error && (turn.role === 'user' || turn.tokens.length > 0))
      .map((turn) => ({role: turn.role, content: textOf(turn)}));
    return {kind: 'chat', messages: [...messages, {role: 'user', content: typed}]};
  }

  async send(typed: string, begun: (label: string) => void) {
    if (this.sending) return;
    const asked = this.asked(typed);
    const answer: Turn = {role: 'assistant', content: '', tokens: [], label: '', reason: '', error: '', usage: null};
    const question: Turn = {...answer, role: 'user', content: typed};
    answer.recorded = records();
    const before = this.mode === 'raw' ? [] : this.turns.filter((turn) => !turn.error);
    const stopper = new AbortController();
    // A conversation that was begun anew meanwhile has other turns.
    const put = () => this.stopper === stopper && (this.turns = [...this.turns.slice(0, -1), {...answer}]);
    // A drawing a frame, however fast tokens come.
    let waiting = false;
    const show = () => {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => {
        waiting = false;
        put();
      });
    };
    this.account = null;
    this.sending = true;
    this.held = Boolean(answer.recorded && this.stepwise);
    this.trouble = '';
    this.turns = [...before, question, answer];
    this.stopper = stopper;
    try {
      await generate(
        asked,
        clean(this.settings),
        answer.recorded ? {record: true, ...(this.stepwise ? {allow: 1} : {})} : {},
        {
          begun: (label) => ((answer.label = label), begun(label), show()),
          tokens: (tokens) => ((answer.tokens = [...answer.tokens, ...tokens]), show()),
          ended: (reason) => ((answer.reason = reason), show()),
          usage: (usage) => ((answer.usage = usage), show()),
        },
        stopper.signal,
      );
    } catch (error) {
      if (stopper.signal.aborted) answer.reason = 'stopped';
      else answer.error = saidBy(error);
    }
    if (this.stopper !== stopper) return;
    this.sending = this.held = false;
    put();
    this.store();
    await this.fetchAccount();
  }

  // Lets the answer wait, draw one more token, or go on.
  async steer(what: 'pause' | 'one' | 'go') {
    const label = this.turns.at(-1)?.label;
    if (!this.sending || !label) return;
    this.held = what !== 'go';
    try {
      await hold(label, what === 'go' ? {release: true} : {allow: what === 'one' ? 1 : 0});
      this.trouble = '';
    } catch (error) {
      // It has ended meanwhile.
      if (this.sending) (this.held = false), (this.trouble = saidBy(error));
    }
  }

  // Another answer from a token on, which is `text`, number `rank` of the alternatives there. `of`: which fork is left;
  // -1: the answer itself.
  async fork(turn: number, of: number, at: number, text: string, rank: number) {
    const left = this.turns[turn];
    const from = of < 0 ? left : left?.forks?.[of];
    if (!left || !from?.label) return;
    this.trouble = '';
    const slot = left.forks?.length ?? 0;
    const stopper = new AbortController();
    this.forking.add(stopper);
    const show = (branch: Branch) => {
      if (stopper.signal.aborted) return;
      this.turns = this.turns.map((t, i) => {
        if (i !== turn) return t;
        const forks = [...(t.forks ?? [])];
        forks[slot] = branch;
        return {...t, forks};
      });
    };
    try {
      const kept = await fetchTokens(from.label);
      const token = await idOf(kept, at, text, rank);
      if (token === null) throw new Error('This token is not among those that the server lists there.');
      const old = from.tokens[at];
      const shown = {text, bytes: null, logprob: NaN, ...old?.top[rank], top: old?.top ?? [], at: 0};
      await grow({kept, said: from.tokens, at, token: {id: token, shown}}, show, stopper.signal);
      this.store();
    } catch (error) {
      this.trouble = saidBy(error);
    }
    this.forking.delete(stopper);
  }
  dropFork(turn: number, of: number) {
    this.turns = this.turns.map((t, i) => (i === turn ? {...t, forks: t.forks?.filter((_, k) => k !== of) ?? []} : t));
    this.store();
  }

  stop() {
    this.stopper?.abort();
  }
  clear() {
    this.stop();
    this.stopper = null;
    for (const one of this.forking) one.abort();
    this.forking.clear();
    this.sending = this.held = false;
    this.trouble = '';
    this.turns = [];
    this.account = null;
    sessionStorage.removeItem(kStore);
  }
  dropOldest() {
    this.turns = this.turns.slice(2);
    this.store();
  }

  // What a reload left: of that request, or nothing.
  restore(label: string) {
    if (this.turns.length || !label) return;
    try {
      const kept = JSON.parse(sessionStorage.getItem(kStore) ?? 'null') as {mode: Mode; turns: Turn[]} | null;
      if (!kept?.turns.some((turn) => turn.label === label)) return;
      this.mode = kept.mode;
      this.turns = kept.turns;
      void this.fetchAccount();
    } catch {
      sessionStorage.removeItem(kStore);
    }
  }

  private store() {
    try {
      const text = JSON.stringify({mode: this.mode, turns: this.turns});
      if (text.length <= kMostStored) sessionStorage.setItem(kStore, text);
    } catch {
      // The browser has no room: a reload then starts anew.
    }
  }

  // The engine closes an account just after the last byte, or, when the client left, at its next step.
  private async fetchAccount() {
    const label = this.label;
    for (let tries = 0; label && tries < 10; ++tries) {
      try {
        const found = await get<{requests: Account[]}>(`/api/requests/${encodeURIComponent(label)}`);
        if (label !== this.label) return;
        this.account = found.requests[0] ?? null;
        if (this.account?.state === 'ended') return;
      } catch {
        if (tries > 3) return;
      }
      await new Promise((done) => setTimeout(done, 100));
    }
  }
}

function clean(settings: Settings): Settings {
  return Object.fromEntries(Object.entries(settings).filter(([, value]) => typeof value === 'number' && Number.isFinite(value)));
}

export const conversation = new Conversation();
