// The text that is taken apart, its chosen word and how many merges are done: all in the address, so that a link shows
// the same again.
import {untrack} from 'svelte';
import {parseRoute, router, writeRoute} from '../app/route.svelte';
import {saidBy} from '../data/api';
import {Bytes, tell, type Told} from '../data/tokens';

const kMostInAddress = 1000;

export class TextBench {
  text = $state('');
  word = $state(-1); // -1: the one with the most to see
  merge = $state(-1); // -1: all done
  told = $state.raw<Told | null>(null);
  refused = $state('');
  readonly bytes = $derived(new Bytes(this.told?.normalized ?? ''));
  readonly at = $derived.by(() => {
    const words = this.told?.words ?? [];
    if (this.word >= 0) return Math.min(this.word, words.length - 1);
    const most = (i: number) => words[i]!.merges?.length ?? words[i]!.candidates?.length ?? words[i]!.ids.length;
    return words.reduce((best, _, i) => (best < 0 || most(i) > most(best) ? i : best), -1);
  });
  readonly chosen = $derived(this.told?.words[this.at] ?? null);
  readonly merges = $derived(this.chosen?.merges?.length ?? 0);
  readonly done = $derived(this.merge < 0 ? this.merges : Math.min(this.merge, this.merges));

  // To be made where a component is.
  constructor(fallback: string) {
    const home = router.now;
    const {text, word, merge} = home.query;
    this.text = text ?? fallback;
    if (word) this.word = Math.max(-1, Math.trunc(Number(word)) || 0);
    if (merge) this.merge = Math.max(-1, Math.trunc(Number(merge)) || 0);
    $effect(() => {
      const content = this.text;
      const stopper = new AbortController();
      const timer = setTimeout(async () => {
        try {
          this.told = await tell(content, stopper.signal);
          this.refused = '';
        } catch (error) {
          if (!stopper.signal.aborted) this.refused = saidBy(error);
        }
      }, untrack(() => this.told) ? 150 : 0);
      return () => (clearTimeout(timer), stopper.abort());
    });
    $effect(() => {
      const query: Record<string, string> = {};
      if (this.text.length <= kMostInAddress && this.text !== fallback) query['text'] = this.text;
      if (this.word >= 0) query['word'] = String(this.word);
      if (this.merge >= 0) query['merge'] = String(this.merge);
      const timer = setTimeout(() => {
        // The address itself: the router hears of a new one a moment later, and that must not be undone.
        const {view, argument, query: {text: _t, word: _w, merge: _m, ...rest}} = parseRoute(location.hash);
        const there = {view, argument, query: {...rest, ...query}};
        if (view === home.view && argument === home.argument && writeRoute(there) !== location.hash) router.replace(there);
      }, 200);
      return () => clearTimeout(timer);
    });
  }
  write(text: string) {
    this.text = text;
    this.word = this.merge = -1;
  }
  choose(word: number) {
    this.word = word;
    this.merge = -1;
  }
  step(by: number) {
    this.merge = Math.max(0, Math.min(this.merges, this.done + by));
  }
}
