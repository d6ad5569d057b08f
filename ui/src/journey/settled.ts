// A request after its last byte: the engine closes its account just after it.
import type {Account} from '../data/api';
import {fetchRequest} from '../data/request.svelte';

export async function settled(label: string, signal?: AbortSignal): Promise<Account[]> {
  for (let tries = 0; ; ++tries) {
    const accounts = await fetchRequest(label);
    const over = accounts.every((a) => a.state === 'ended' && (a as {written?: boolean}).written !== false);
    if (over || tries > 40 || signal?.aborted) return accounts;
    await new Promise((done) => setTimeout(done, 50));
  }
}
