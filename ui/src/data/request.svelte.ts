// One request, asked for again until it has ended and its last byte is out.
import {ApiError, get, saidBy, type Account} from './api';
import {conversation} from './conversation.svelte';
import {router} from '../app/route.svelte';

export const fetchRequest = async (label: string): Promise<Account[]> =>
  (await get<{requests: Account[]}>(`/api/requests/${encodeURIComponent(label)}`)).requests;

// The request that all views are about: in the address, or the last one of this tab.
class Current {
  private last = $state('');
  get label(): string {
    const {view, argument, query} = router.now;
    return (view === 'request' && argument) || query['req'] || this.last || conversation.label;
  }
  // This one from now on, also in the address where the view has one for it.
  take(label: string) {
    this.last = label;
    const {view, argument, query} = router.now;
    if (view === 'journey' || view === 'lab') router.replace({view, argument, query: {...query, req: label}});
  }
}
export const current = new Current();

export interface Followed {
  readonly accounts: Account[]; // a choice each
  readonly error: string;
  readonly waiting: boolean; // for the first answer
  again(): void;
}

const over = (a: Account, tries: number) => a.state === 'ended' && (tries > 20 || a.written !== false);

// Follows the request of that name for as long as the component lives. '': none.
export function followed(label: () => string): Followed {
  let answer = $state.raw<{label: string; accounts: Account[]; error: string} | null>(null);
  let turn = $state(0);
  $effect(() => {
    const name = label();
    void turn;
    if (!name) return;
    let stopped = false, timer: ReturnType<typeof setTimeout> | undefined;
    let tries = 0;
    const ask = async () => {
      const out = {label: name, accounts: [] as Account[], error: ''};
      try {
        out.accounts = await fetchRequest(name);
      } catch (error) {
        out.error = error instanceof ApiError && error.status === 401 ? '' : saidBy(error);
      }
      if (stopped) return;
      answer = out;
      tries = out.accounts.every((a) => a.state === 'ended') ? tries + 1 : 0;
      if (!out.error && !out.accounts.every((a) => over(a, tries))) timer = setTimeout(ask, document.hidden ? 2000 : 300);
    };
    void ask();
    return () => ((stopped = true), clearTimeout(timer));
  });
  const mine = () => (answer?.label === label() ? answer : null);
  return {
    get accounts() {
      return mine()?.accounts ?? [];
    },
    get error() {
      return mine()?.error ?? '';
    },
    get waiting() {
      return label() !== '' && mine() === null;
    },
    again: () => void ++turn,
  };
}
