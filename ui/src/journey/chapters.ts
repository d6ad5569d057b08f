// The chapters of the Journey: a file each, fetched when it is opened. One without `load` is listed as not there yet.
import type {Component} from 'svelte';

export interface Chapter {
  id: string; // in the address: #/journey/ID
  title: string;
  says: string; // what one learns there, a sentence
  load?: () => Promise<{default: Component}>;
}
export const chapters: Chapter[] = [
  {id: '1', title: 'Enter', says: 'Most of a wait is not arithmetic.', load: () => import('./01-enter.svelte')},
  {id: '2', title: 'Tokens', says: 'The model reads integers.', load: () => import('./02-tokens.svelte')},
  {id: '2b', title: 'Vectors', says: 'An integer picks a row of a table, and its place turns it.'},
  {id: '3', title: 'The loop', says: 'Scores are reshaped, one token is drawn, appended, again.', load: () => import('./03-loop.svelte')},
  {id: '4', title: 'Two phases', says: 'One wide pass, then a thin stream.', load: () => import('./04-phases.svelte')},
  {id: '4b', title: 'Quadratic', says: 'Twice the prompt is four times the attention.'},
  {id: '5', title: 'KV cache', says: 'The past does not change, so keep it.', load: () => import('./05-cache.svelte')},
  {id: '6', title: 'Attention', says: 'The new token asks, every key answers.'},
  {id: '6b', title: 'Layers', says: 'Every layer adds a little to one stream of numbers.'},
  {id: '7', title: 'Memory wall', says: 'Compute waits for bytes.'},
  {id: '8', title: 'Batching', says: 'One pass over the weights serves many.'},
  {id: '9', title: 'Paging', says: 'Fixed pages, a table, sharing.', load: () => import('./09-paging.svelte')},
  {id: '10', title: 'FlashAttention', says: 'The matrix of all scores is never written.'},
  {id: '11', title: 'Speculation', says: 'Guess cheaply, verify together.'},
  {id: '12', title: 'Quantization', says: 'Fewer bytes over the bridge.'},
  {id: '13', title: 'Price', says: 'Three prices, three kinds of work.', load: () => import('./13-price.svelte')},
  {id: 'recap', title: 'Recap', says: 'The whole request in one flight, and what each idea saved here.'},
];
