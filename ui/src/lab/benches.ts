// The benches of the Lab: a file each, fetched when it is opened.
import type {Component} from 'svelte';

export interface Bench {
  name: string; // in the address: #/lab/NAME
  title: string;
  says: string; // what one learns there, a sentence
  load: () => Promise<{default: Component}>;
}
export const benches: Bench[] = [
  {
    name: 'tokens',
    title: 'Tokens',
    says: 'How a text becomes numbers: every merge in its order, and what the chat template adds.',
    load: () => import('./Tokens.svelte'),
  },
  {
    name: 'sampling',
    title: 'Sampling',
    says: 'How a token was drawn, stage by stage, and what other parameters would have drawn.',
    load: () => import('./Sampling.svelte'),
  },
];
