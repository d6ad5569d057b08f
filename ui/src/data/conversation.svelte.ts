// What was asked and answered in this tab. A reload finds it here, by the name of the request in the URL; what
// another tab asked, the server may have recorded.
import {ApiError, get, saidBy, type Account} from './api';
import {grow, idOf, outputOf, tokenOf, type Branch} from './branch';
import {joined} from './format';
import {generate, type Asked, type Message, type Settings, type Token, type Usage} from './generate';
import {live} from './live.svelte';
import {fetchTokens, hold, type Kept} from './truth';

export interface Turn {
  role: 'user' | 'assistant';
  content: string; // of an answer: without reasoning and calls; empty: its tokens'
  tokens: Token[];
  label: string;
  reason: string; // why it ended; empty while it runs
  error: string;
  usage: Usage | null;
  recorded?: boolean; // the server keeps its tokens
  elsewhere?: boolean; // it runs, and another page asked for it
  forks?: Branch[];
}

// The server keeps texts of requests that ask for it.
export const records = (): boolean => live.info?.record !== undefined && live.info.record.mode !== 'none';

const kStore = 'vitrine.conversation';
const kMostStored = 2 << 20;

export type Mode = 'chat' | 'raw';

export const textOf = (turn: Turn): string => turn.content || joined(turn.tokens);

class Conversation {
  mode = $state<Mode>('chat');
  turns = $state.raw<Turn[]>([]);
  settings = $state<Settings>({});
  account = $state.raw<Account | null>(null); // of the last answer, once it has ended
  sending = $state(false);
  stepwise = $state(false); // the next answer begins paused after its first token
  held = $state(false);
  trouble = $state(''); // why a fork or a pause did not work
  opening = $state(''); // the request that the server is asked for
  missing = $state.raw<{label: string; why: string} | null>(null); // the one that could not be opened
  private stopper: AbortController | null = null;
  private forking = new Set<AbortController>();

  get label(): string {
    return this.turns.findLast((turn) => turn.label !== '')?.label ?? '';
  }

  // Where the tokens of a request are: its turn, and which fork of it; -1: the answer itself.
  find(label: string): {turn: number; branch: number} | null {
    if (label === '') return null;
    for (const [turn, {label: own, forks}] of this.turns.entries()) {
      if (label === own) return {turn, branch: -1};
      const branch = forks?.findIndex((fork) => fork.label === label) ?? -1;
      if (branch >= 0) return {turn, branch};
    }
    return null;
  }

  asked(typed: string): Asked {
    return this.mode === 'raw' ? {kind: 'raw', prompt: typed} : {kind: 'chat', messages: [...this.said(this.turns), {role: 'user', content: typed}]};
  }
  // What the answer at that place was an answer to.
  askedAt(turn: number): Asked {
    const before = this.turns.slice(0, turn);
    return this.mode === 'raw' ? {kind: 'raw', prompt: before.at(-1)?.content ?? ''} : {kind: 'chat', messages: this.said(before)};
  }
  private said(turns: readonly Turn[]): Message[] {
    return turns.filter((turn) => !turn.error && (turn.role === 'user' || textOf(turn) !== '')).map((turn) => ({role: turn.role, content: textOf(turn)}));
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
    this.missing = null;
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
          begun: (label) => ((answer.label = label), put(), begun(label)),
          tokens: (tokens) => ((answer.tokens = [...answer.tokens, ...tokens]), show()),
          said: (text) => (answer.content += text),
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
    // What a frame of the stream brings need not be of one kind; the server knows of each token.
    if (answer.recorded && answer.label && (answer.usage?.reasoning || answer.tokens.some((t) => t.kind))) {
      const kept = await fetchTokens(answer.label).catch(() => null);
      const drawn = kept ? outputOf(kept) : [];
      answer.tokens = answer.tokens.map((t, i) => ({...t, kind: drawn[i]?.kind ?? t.kind ?? 'output'}));
    }
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
    this.leave();
    sessionStorage.removeItem(kStore);
  }
  private leave() {
    this.stop();
    this.stopper = null;
    for (const one of this.forking) one.abort();
    this.forking.clear();
    this.sending = this.held = false;
    this.trouble = this.opening = '';
    this.missing = null;
    this.turns = [];
    this.account = null;
  }
  dropOldest() {
    this.turns = this.turns.slice(2);
    this.store();
  }

  // The conversation of that request, as a reload left it, or else as the server recorded it.
  async open(label: string) {
    if (this.opening === label || this.missing?.label === label) return;
    this.leave();
    if (this.restore(label)) return;
    this.opening = label;
    try {
      for (let before: Turn[] | null = null; this.opening === label; ) {
        const kept = await fetchTokens(label);
        before ??= await this.before(kept);
        if (this.opening !== label) return;
        this.turns = [...before, answerOf(kept)];
        if (kept.state === 'ended') break;
        await new Promise((done) => setTimeout(done, 300));
      }
      if (this.opening !== label) return;
      this.opening = '';
      await this.fetchAccount();
    } catch (error) {
      if (this.opening !== label) return;
      this.opening = '';
      if (!(error instanceof ApiError && error.status === 401)) this.missing = {label, why: saidBy(error)};
    }
  }
  // Its turns before the answer.
  private async before(kept: Kept): Promise<Turn[]> {
    const messages = kept.chat ? await (await import('../fig/beside')).messagesOf(kept) : null;
    this.mode = messages ? 'chat' : 'raw';
    const prompt = kept.tokens.slice(0, kept.prompt_tokens);
    const turn: Turn = {role: 'user', content: '', tokens: [], label: '', reason: '', error: '', usage: null};
    if (!messages) return [{...turn, content: joined(kept.chat ? prompt : prompt.filter((t) => !t.special))}];
    return messages.map(({role, content}) => ({...turn, role: role as Turn['role'], content}));
  }

  private restore(label: string): boolean {
    try {
      const kept = JSON.parse(sessionStorage.getItem(kStore) ?? 'null') as {mode: Mode; turns: Turn[]} | null;
      if (!kept?.turns.some((turn) => turn.label === label || turn.forks?.some((fork) => fork.label === label))) return false;
      this.mode = kept.mode;
      this.turns = kept.turns;
      void this.fetchAccount();
      return true;
    } catch {
      sessionStorage.removeItem(kStore);
      return false;
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

function answerOf(kept: Kept): Turn {
  const drawn = outputOf(kept), prompt = kept.tokens.slice(0, kept.prompt_tokens);
  const count = (tokens: Kept['tokens'], kind: string) => tokens.filter((t) => t.kind === kind).length;
  const start = drawn.find((t) => t.at_ns)?.at_ns ?? 0, ended = kept.state === 'ended';
  return {
    role: 'assistant',
    content: joined(drawn.filter((t) => t.kind === 'output')),
    // Later than nothing, so that the first has a time too.
    tokens: drawn.map((t) => ({...tokenOf(t), at: t.at_ns ? 1 + (t.at_ns - start) / 1e6 : 0, drawn: true})),
    label: kept.label,
    reason: ended ? (kept.finish_reason ?? 'stop') : '',
    error: '',
    usage: ended ? {prompt: kept.prompt_tokens, cached: count(prompt, 'cached'), output: drawn.length, reasoning: count(drawn, 'reasoning')} : null,
    recorded: true,
    elsewhere: !ended,
  };
}

function clean(settings: Settings): Settings {
  return Object.fromEntries(Object.entries(settings).filter(([, value]) => typeof value === 'number' && Number.isFinite(value)));
}

export const conversation = new Conversation();
