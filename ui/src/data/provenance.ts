// Where a figure comes from. A number is drawn by <Num> only, which takes its field from this table, so
// that none is on the page without a source.
import type {Unit} from './format';

export const provenances = ['measured', 'probe', 'computed', 'recorded', 'simulated'] as const;
export type Provenance = (typeof provenances)[number];

export const meaning: Record<Provenance, string> = {
  measured: 'Read from a clock or a counter of the engine, the server or this browser, for this very event.',
  probe: 'Read from a second run of the recorded tokens through the same kernels.',
  computed: 'Exact arithmetic on measured values or on the configuration.',
  recorded: 'From a file or an earlier process.',
  simulated: 'From a model of the machine, with assumptions.',
};

// The weakest of several.
export function weakest(of: readonly Provenance[]): Provenance {
  return provenances[Math.max(0, ...of.map((p) => provenances.indexOf(p)))]!;
}

export interface Field {
  unit: Unit;
  from: Provenance;
  help: string;
}

const field = (unit: Unit, from: Provenance, help: string): Field => ({unit, from, help});

export const fields = {
  // A request's account.
  'request.choice': field('plain', 'measured', 'Which of the request’s choices.'),
  'request.prompt_tokens': field('tokens', 'measured', 'Tokens of the prompt, with those of the template.'),
  'request.cached_tokens': field('tokens', 'measured', 'Prompt tokens whose keys and values came from the prefix cache.'),
  'request.fresh_tokens': field('tokens', 'computed', 'Prompt tokens less those from the cache.'),
  'request.completion_tokens': field('tokens', 'measured', 'Tokens drawn for the answer.'),
  'request.queue_ms': field('ms', 'measured', 'From submission to a seat in the batch.'),
  'request.prefill_ms': field('ms', 'measured', 'The steps in which it prefilled, without committing.'),
  'request.decode_ms': field('ms', 'measured', 'The steps in which it decoded, without committing.'),
  'request.other_ms': field('ms', 'computed', 'Total less queue and steps: committing, and steps in which it had no rows.'),
  'request.ttft_ms': field('ms', 'measured', 'From submission to the first token.'),
  'request.tpot_ms': field('ms', 'computed', 'From the first token to the end, by the tokens after the first.'),
  'request.total_ms': field('ms', 'measured', 'From submission to the end, or until now.'),
  'request.steps': field('steps', 'measured', 'Steps of the engine in which this request had rows.'),
  'request.pages': field('pages', 'measured', 'Pages of the KV cache held at most.'),
  'request.batch_mean': field('count', 'computed', 'Sequences per step, averaged over this request’s steps.'),
  'request.flops': field('flop', 'computed', 'Counted from the shapes of the products that ran for its rows.'),
  'request.kv_read_bytes': field('bytes', 'computed', 'Keys and values that its rows read, counted from shapes.'),
  'request.kv_write_bytes': field('bytes', 'computed', 'Keys and values that its rows wrote, counted from shapes.'),
  'request.weight_bytes': field('bytes', 'computed', 'Its share of the weights that its steps read.'),
  // A step of a request.
  'step.number': field('plain', 'measured', 'Steps are counted since the engine started.'),
  'step.start_ms': field('ms', 'computed', 'Since this request’s first step began.'),
  'step.ms': field('ms', 'computed', 'Planning, forward pass, drawing and committing together.'),
  'step.plan_ms': field('ms', 'measured', 'Choosing tokens, pages and rows.'),
  'step.forward_ms': field('ms', 'measured', 'The model’s layers.'),
  'step.sample_ms': field('ms', 'measured', 'Logits and the draw.'),
  'step.commit_ms': field('ms', 'measured', 'Appending tokens and freeing pages.'),
  'step.rows': field('count', 'measured', 'Rows of this request in the step.'),
  'step.first': field('plain', 'measured', 'Position of its first row.'),
  'step.sequences': field('count', 'measured', 'Sequences in the step, this one included.'),
  'step.all_rows': field('count', 'measured', 'Rows of all sequences in the step.'),
  'step.lost': field('steps', 'computed', 'Numbers missing between the steps that were fetched.'),
  'step.gap_ms': field('ms', 'computed', 'Time between its steps, in which it had no rows.'),
  'step.wait_ms': field('ms', 'measured', 'Waiting for a device to be through.'),
  'step.between_ms': field('ms', 'computed', 'From the step before to this one, less what is timed within it.'),
  'step.host_share': field('share', 'computed', 'Planning, committing and the time between steps, of the time of the steps.'),
  'step.idle_share': field('share', 'computed', 'By the device’s clock: without work, of the time of the steps.'),
  // A token as this browser saw it.
  'token.probability': field('probability', 'computed', 'e to the log probability that the engine sent; before temperature and cuts.'),
  'token.rest': field('probability', 'computed', 'What is left for all other tokens of the vocabulary.'),
  'token.logprob': field('logprob', 'measured', 'Natural logarithm of its probability over the whole vocabulary.'),
  'token.position': field('plain', 'measured', 'Counted from the answer’s first token.'),
  'token.rank': field('plain', 'computed', 'Place among the alternatives by probability.'),
  'token.id': field('plain', 'measured', 'Number in the vocabulary.'),
  'token.gap_ms': field('ms', 'measured', 'Since the token before it arrived, by this browser’s clock.'),
  'token.bytes': field('plain', 'measured', 'Bytes of its text.'),
  // The draw of a token, on the recorded tokens run again.
  'stage.p': field('probability', 'probe', 'Probability after this stage.'),
  'stage.rest': field('probability', 'probe', 'Probability of all that has no row here, together.'),
  'stage.kept': field('count', 'probe', 'Tokens that can still be drawn after this stage.'),
  'stage.mass': field('share', 'probe', 'Share of the probability before this stage that it kept.'),
  'stage.entropy': field('nats', 'probe', 'How open the draw is after this stage: the expected surprise.'),
  'stage.value': field('plain', 'measured', 'As it is set.'),
  'race.noise': field('number', 'probe', 'A random number of this token alone: exponential, from seed and position.'),
  'race.time': field('number', 'probe', 'Its random number divided by its probability. The least wins.'),
  'draws.count': field('count', 'probe', 'How often it was drawn with other seeds.'),
  'draws.expected': field('count', 'computed', 'Draws by its probability.'),
  'draws.all': field('count', 'measured', 'Draws at this position, each with a seed of its own.'),
  'draws.chi': field('number', 'computed', 'Chi-square of counts against probabilities; near the degrees of freedom if they agree.'),
  'draws.freedom': field('count', 'computed', 'Cells with at least five expected draws, less one.'),
  'scan.changed': field('tokens', 'probe', 'Tokens that would be others, each judged on what was said before it.'),
  'scan.tokens': field('tokens', 'measured', 'Tokens of the answer.'),
  'loop.length': field('tokens', 'computed', 'Tokens in a row that were said before in the same order.'),
  'loop.times': field('count', 'computed', 'How often it is said in a row.'),
  'loop.before': field('tokens', 'probe', 'Tokens before the repeat that it would change too.'),
  'browser.first_ms': field('ms', 'measured', 'From Send to the first token, by this browser’s clock.'),
  'browser.network_ms': field('ms', 'computed', 'The browser’s time to the first token less the engine’s: network, HTTP, template, tokenizer.'),
  // Context gauge.
  'context.used': field('tokens', 'measured', 'Tokens of the prompt and the answer.'),
  'context.draft': field('tokens', 'measured', 'Tokens of what is typed, with the conversation and the template, by the server’s tokenizer.'),
  'context.limit': field('tokens', 'measured', 'Positions that a sequence may have on this server.'),
  // The engine now.
  'engine.running': field('count', 'measured', 'Sequences with a seat.'),
  'engine.waiting': field('count', 'measured', 'Sequences in the queue.'),
  'engine.seats': field('count', 'measured', 'Sequences that may run at once.'),
  'engine.needed': field('pages', 'measured', 'Pages for its prompt and one token, and one for each that runs.'),
  'engine.available': field('pages', 'measured', 'Pages that are free or may be evicted.'),
  'engine.queue_limit': field('count', 'measured', 'Sequences that may wait.'),
  'engine.step_tokens': field('tokens', 'measured', 'Most rows of one step.'),
  'engine.steps': field('count', 'measured', 'Steps since the engine started.'),
  'engine.uptime': field('s', 'measured', 'Since the engine started.'),
  'engine.prefill_rate': field('tok/s', 'computed', 'Prompt tokens computed in the last interval, by its length.'),
  'engine.decode_rate': field('tok/s', 'computed', 'Tokens drawn in the last interval, by its length.'),
  'engine.kv_share': field('share', 'computed', 'Pages held by sequences, of all pages.'),
  'page.number': field('plain', 'measured', 'Where the page is in its pool.'),
  'page.index': field('plain', 'measured', 'Which page of the sequence it is, counted from zero.'),
  'page.holders': field('count', 'measured', 'Sequences whose block tables name it.'),
  'page.entries': field('count', 'measured', 'Entries of block tables that name a page.'),
  'page.saved': field('pages', 'computed', 'Entries of block tables less the pages that they name.'),
  'pool.total': field('pages', 'measured', 'Pages of the pool.'),
  'pool.used': field('pages', 'measured', 'Held by at least one sequence.'),
  'pool.cached': field('pages', 'measured', 'Held by nobody, kept because a prompt may find them.'),
  'pool.free': field('pages', 'measured', 'Holding nothing.'),
  'pool.shared': field('pages', 'measured', 'Held by more than one sequence.'),
  'pool.waste': field('share', 'computed', 'Positions of held pages that hold no token.'),
  'pool.page_size': field('tokens', 'measured', 'Positions of a page.'),
  'pool.bytes': field('bytes', 'computed', 'Pages by the bytes of a page.'),
  'pool.window': field('tokens', 'measured', 'Positions that its layers look back.'),
  'queue.waited_ms': field('ms', 'computed', 'Since it was submitted, by the server’s clock.'),
  'latency.ttft_ms': field('ms', 'measured', 'From submission to the step that drew the first token, in the last minute.'),
  'latency.itl_ms': field('ms', 'measured', 'Between the steps that drew two tokens of the same sequence, in the last minute.'),
  'latency.share': field('share', 'computed', 'The part that does not take longer.'),
  'latency.count': field('count', 'measured', 'How many were timed.'),
  'rate.times': field('count', 'computed', 'The larger company’s figure by the smaller one’s.'),
  'roof.rate': field('GFLOP/s', 'computed', 'FLOPs counted from shapes, by the measured time of layers and head.'),
  'roof.read': field('GB/s', 'computed', 'Bytes counted from shapes, by the measured time of layers and head.'),
  'roof.intensity': field('FLOP/B', 'computed', 'FLOPs for each byte of weights, keys and values, counted from shapes.'),
  'roof.tick': field('count', 'computed', 'A power of ten, to read the axis by.'),
  'roof.share': field('share', 'computed', 'The mean of the steps shown, of the measured peak.'),
  'tree.tokens': field('tokens', 'measured', 'Tokens whose keys and values the cache has.'),
  'tree.pages': field('pages', 'measured', 'Pages that have a key.'),
  'tree.count': field('count', 'computed', 'Counted in the tree.'),
  'tree.age': field('ms', 'computed', 'Since it was last found or held, by the server’s clock.'),
  'engine.behind': field('ms', 'computed', 'From what is shown to the newest that is kept.'),
  'engine.kept': field('ms', 'computed', 'From the oldest that is kept to the newest.'),
  // The model.
  'model.layers': field('count', 'measured', 'From the file.'),
  'model.dim': field('count', 'measured', 'Width of a hidden state, from the file.'),
  'model.heads': field('count', 'measured', 'Query heads of a layer, from the file.'),
  'model.vocab': field('count', 'measured', 'Tokens that the model knows, from the file.'),
  'model.context': field('tokens', 'measured', 'Positions that the model was made for, from the file.'),
  'model.parameter': field('plain', 'measured', 'As the server has it.'),
  'memory.bytes': field('bytes', 'measured', 'Allocated when the model was loaded, as planned before.'),
  'memory.most': field('bytes', 'computed', 'An upper bound; taken as needed.'),
  'memory.per_token': field('bytes', 'computed', 'Keys and values of one position, over all layers.'),
  'memory.sequences': field('count', 'computed', 'Pages of the pools by the pages of a sequence of full length.'),
  'text.tokens': field('tokens', 'measured', 'Counted by the server’s tokenizer.'),
  'text.characters': field('count', 'measured', 'Characters of the text, as Unicode counts them.'),
  'text.ratio': field('count', 'computed', 'Characters by tokens.'),
  'text.bytes': field('bytes', 'measured', 'Bytes of the text after normalization, in UTF-8.'),
  'text.words': field('count', 'measured', 'Pieces that the pre-tokenizer cuts the text into; each becomes tokens on its own.'),
  // A word that becomes tokens.
  'word.number': field('plain', 'measured', 'Which piece of the text, counted from zero.'),
  'word.letters': field('count', 'computed', 'Counted by this browser, as a reader counts letters.'),
  'merge.number': field('plain', 'computed', 'Merges done, in the order in which the tokenizer does them.'),
  'merge.count': field('count', 'measured', 'Merges that the tokenizer does in this word.'),
  'merge.start': field('count', 'measured', 'Parts of the word.'),
  'merge.rank': field('plain', 'measured', 'Place of the pair in the tokenizer’s list of merges; the lowest goes first.'),
  'candidate.score': field('logprob', 'measured', 'Score of the token, from the tokenizer’s file.'),
  'candidate.total': field('logprob', 'computed', 'Sum of the scores of the best way up to here.'),
  'candidate.left_out': field('count', 'measured', 'Candidates that the server did not send.'),
  'span.message': field('plain', 'measured', 'Which message of the conversation, counted from zero.'),
} satisfies Record<string, Field>;

export type FieldName = keyof typeof fields;
export const fieldOf = (name: FieldName): Field => fields[name];
