// A recorded request on the bench: its tokens, what other parameters do to one draw, and to all of them.
import {untrack} from 'svelte';
import {saidBy} from './api';
import {drawnOf, grow, outputOf, tokenOf, type Branch} from './branch';
import {live} from './live.svelte';
import {changes, ownSetup, same, type Setup} from './stages';
import {differences, fetchScan, fetchStages, fetchTokens, type Kept, type Scan, type Stages} from './truth';

const kDraws = 1000, kPauseMs = 80;

// For as long as the component lives. `place`: the token, from 0, not beyond the answer's ends; `begin`: the parameters
// to begin with.
export class Bench {
  kept = $state.raw<Kept | null>(null);
  refused = $state(''); // why there is no such request
  trouble = $state('');
  setup = $state.raw<Setup>({values: {}, order: []});
  told = $state.raw<Stages | null>(null);
  stale = $state(false);
  drawing = $state(false);
  scanning = $state(false);
  branch = $state.raw<Branch | null>(null);
  private readonly label: () => string;
  private readonly wanted: () => number;
  private scan = $state.raw<{key: string; found: Scan} | null>(null);
  private stopper: AbortController | null = null;

  readonly draws = kDraws;
  readonly samplers = $derived(live.info?.samplers ?? []);
  readonly output = $derived(this.kept ? drawnOf(this.kept) : []);
  readonly shown = $derived(this.kept ? outputOf(this.kept).map(tokenOf) : []);
  readonly place = $derived.by(() => Math.max(0, Math.min(this.output.length - 1, this.wanted())));
  readonly here = $derived(this.output[this.place]);
  readonly position = $derived((this.kept?.prompt_tokens ?? 0) + this.place);
  readonly own = $derived(this.kept ? ownSetup(this.kept, this.samplers) : null);
  readonly changed = $derived(this.own ? changes(this.own, this.setup) : {});
  readonly same = $derived(same(this.changed));
  private readonly key = $derived.by(() => JSON.stringify([this.label(), this.changed]));
  readonly found = $derived(this.scan?.key === this.key ? this.scan.found : null);
  readonly others = $derived(this.found ? differences(this.found) : []);
  readonly first = $derived.by(() => (this.found?.first_difference == null ? null : this.found.first_difference - this.kept!.prompt_tokens));
  readonly marks = $derived(new Set(this.others.map(([at]) => at - (this.kept?.prompt_tokens ?? 0))));
  readonly was = $derived(this.told?.position === this.position ? (this.here?.id ?? -1) : -1);

  constructor(label: () => string, wanted: () => number, begin: (own: Setup) => Setup = (own) => own) {
    this.label = label;
    this.wanted = wanted;
    $effect(() => {
      const name = label();
      if (!name || !live.info) return;
      this.kept = this.told = this.branch = null;
      this.refused = '';
      this.drawing = false;
      const stop = new AbortController();
      const ask = async () => {
        try {
          const answer = await fetchTokens(name, stop.signal);
          if (this.kept === null) this.setup = begin(ownSetup(answer, this.samplers));
          this.kept = answer;
          if (answer.state === 'running') setTimeout(() => stop.signal.aborted || void ask(), 300);
        } catch (error) {
          if (!stop.signal.aborted) this.refused = saidBy(error);
        }
      };
      void ask();
      return () => (stop.abort(), this.stop());
    });
    // The stages, as soon as hands are still; an older question is given up.
    $effect(() => {
      const name = label(), at = this.position, body = this.changed, draws = this.drawing ? kDraws : 0;
      if (!this.kept || this.kept.label !== name || !this.here) return;
      const stop = new AbortController();
      const late = setTimeout(() => (this.stale = true), 400);
      const timer = setTimeout(async () => {
        try {
          this.told = await fetchStages(name, at, body, draws, stop.signal);
          this.trouble = '';
        } catch (error) {
          if (!stop.signal.aborted) (this.trouble = saidBy(error)), (this.told = null);
        }
        if (!stop.signal.aborted) clearTimeout(late), (this.stale = false);
      }, untrack(() => this.told) ? kPauseMs : 0);
      return () => (clearTimeout(timer), clearTimeout(late), stop.abort());
    });
  }

  // Which tokens would be others: the place of the first.
  async search(): Promise<number | null> {
    const asked = this.key;
    this.scanning = true;
    try {
      this.scan = {key: asked, found: await fetchScan(this.label(), this.changed)};
      this.trouble = '';
    } catch (error) {
      this.trouble = saidBy(error);
    }
    this.scanning = false;
    return asked === this.key ? this.first : null;
  }
  // Another answer from there on, with these parameters; `token`: with that one in its place.
  async leave(at: number, token?: number) {
    if (!this.kept) return;
    this.stop();
    this.stopper = new AbortController();
    const forced = token === undefined ? undefined : this.told?.stages.flatMap((s) => s.top).find((c) => c[0] === token);
    await grow({kept: this.kept, said: this.shown, at, changed: this.changed, ...(forced ? {token: {id: forced[0], shown: {text: forced[1], bytes: null, logprob: NaN, top: [], at: 0}}} : {})}, (now) => (this.branch = now), this.stopper.signal);
  }
  stop() {
    this.stopper?.abort();
  }
}
