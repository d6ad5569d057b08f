// What was asked and answered in this tab. The server keeps no texts, so a reload finds them here, by
// the name of the request in the URL.
import {get, saidBy, type Account} from './api';
import {generate, type Asked, type Message, type Settings, type Token, type Usage} from './generate';

export interface Turn {
  role: 'user' | 'assistant';
  content: string; // of the user; an answer's text is its tokens'
  tokens: Token[];
  label: string;
  reason: string; // why it ended; empty while it runs
  error: string;
  usage: Usage | null;
}

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
  private stopper: AbortController | null = null;

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
    const before = this.mode === 'raw' ? [] : this.turns.filter((turn) => !turn.error);
    // A drawing a frame, however fast tokens come.
    let waiting = false;
    const show = () => {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => {
        waiting = false;
        this.turns = [...before, question, {...answer}];
      });
    };
    this.account = null;
    this.sending = true;
    this.turns = [...before, question, answer];
    this.stopper = new AbortController();
    try {
      await generate(
        asked,
        clean(this.settings),
        {
          begun: (label) => ((answer.label = label), begun(label), show()),
          tokens: (tokens) => ((answer.tokens = [...answer.tokens, ...tokens]), show()),
          ended: (reason) => ((answer.reason = reason), show()),
          usage: (usage) => ((answer.usage = usage), show()),
        },
        this.stopper.signal,
      );
    } catch (error) {
      if (this.stopper.signal.aborted) answer.reason = 'stopped';
      else answer.error = saidBy(error);
    }
    this.sending = false;
    this.turns = [...before, question, {...answer}];
    this.store();
    await this.fetchAccount();
  }

  stop() {
    this.stopper?.abort();
  }
  clear() {
    this.stop();
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
