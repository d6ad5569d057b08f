// Requests whose answer nobody reads as it comes: what the Journey and the benches send.
import {ApiError, call} from './api';
import {live} from './live.svelte';
import {events} from './sse';

export interface Sent {
  label: string;
  done: Promise<string>; // the text of the first choice
}

export type Body = Record<string, unknown>; // of a chat (`messages`) or of a completion (`prompt`)

// Resolves when the server has taken it.
export async function sendQuietly(body: Body, signal?: AbortSignal): Promise<Sent> {
  const path = 'messages' in body ? '/v1/chat/completions' : '/v1/completions';
  const response = await call(path, {...(live.info?.record ? {vitrine: {record: true}} : {}), ...body, stream: true}, signal);
  const label = response.headers.get('x-request-id') ?? '';
  const done = (async () => {
    let text = '';
    if (!response.body) throw new ApiError(0, 'The server sent no answer.');
    for await (const data of events(response.body)) {
      if (data === '[DONE]') break;
      const chunk = JSON.parse(data) as {error?: {message: string}; choices?: {index: number; text?: string; delta?: {content?: string}}[]};
      if (chunk.error) throw new ApiError(0, chunk.error.message);
      for (const choice of chunk.choices ?? []) if (choice.index === 0) text += choice.text ?? choice.delta?.content ?? '';
    }
    return text;
  })();
  done.catch(() => {}); // who waits for it is told
  return {label, done};
}
