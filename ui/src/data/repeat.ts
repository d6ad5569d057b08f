// The same prompt, sent before or after: what the cache saved is seen beside it.
import type {Account} from './api';
import {fetchRequest} from './request.svelte';
import {fetchTokens} from './truth';

const kMost = 3; // that are looked at

// The label of one, by the tokens themselves, of those that are recorded; null: none of the nearest few.
export async function repeatOf(a: Account, list: readonly Account[], signal?: AbortSignal): Promise<string | null> {
  const like = list
    .filter((r) => r.label !== a.label && r.choice === 0 && r.state === 'ended' && r.prompt_tokens === a.prompt_tokens && !r.parent)
    .sort((x, y) => Math.abs(x.submitted_unix_ms - a.submitted_unix_ms) - Math.abs(y.submitted_unix_ms - a.submitted_unix_ms))
    .slice(0, kMost);
  if (like.length === 0 || a.parent) return null;
  const prompt = async (label: string) => (await fetchTokens(label, signal)).tokens.slice(0, a.prompt_tokens).map((t) => t.id).join();
  const own = await prompt(a.label);
  for (const r of like) {
    const [told] = await fetchRequest(r.label);
    if (told?.recorded && (await prompt(r.label)) === own) return r.label;
    if (signal?.aborted) return null;
  }
  return null;
}
