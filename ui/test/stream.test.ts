import {describe, expect, test} from 'vitest';
import {bodyOf, tokensOf} from '../src/data/generate';
import {events} from '../src/data/sse';

function streamOf(pieces: Uint8Array[]): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(to) {
      for (const piece of pieces) to.enqueue(piece);
      to.close();
    },
  });
}

async function all(pieces: Uint8Array[]): Promise<string[]> {
  const out: string[] = [];
  for await (const data of events(streamOf(pieces))) out.push(data);
  return out;
}

describe('server-sent events', () => {
  const text = ': a comment\r\ndata: {"a": "é"}\r\n\r\nevent: x\ndata: one\ndata:two\n\ndata: [DONE]\n\n';
  const bytes = new TextEncoder().encode(text);
  const expected = ['{"a": "é"}', 'one\ntwo', '[DONE]'];

  test('in one piece', async () => expect(await all([bytes])).toEqual(expected));
  test('cut anywhere, also inside a character', async () => {
    for (let at = 0; at <= bytes.length; ++at) expect(await all([bytes.slice(0, at), bytes.slice(at)])).toEqual(expected);
    expect(await all([...bytes].map((b) => new Uint8Array([b])))).toEqual(expected);
  });
  test('an event without its end is not one', async () => expect(await all([new TextEncoder().encode('data: x\n')])).toEqual([]));
});

describe('chunks of an answer', () => {
  test('of a chat', () => {
    const got = tokensOf({logprobs: {content: [{token: 'a', logprob: -1, bytes: [97], top_logprobs: [{token: 'b', logprob: -0.5, bytes: [98]}]}]}}, 7);
    expect(got).toEqual([{text: 'a', bytes: [97], logprob: -1, at: 7, top: [{text: 'b', bytes: [98], logprob: -0.5}]}]);
  });
  test('of a completion: alternatives in order', () => {
    const got = tokensOf({logprobs: {tokens: ['a'], token_logprobs: [-1], top_logprobs: [{c: -2, a: -1}]}}, 0);
    expect(got[0]!.top.map((t) => t.text)).toEqual(['a', 'c']);
  });
  test('without log probabilities there are no tokens', () => expect(tokensOf({logprobs: null}, 0)).toEqual([]));
  test('a setting that is not given is not sent', () => {
    expect(bodyOf({kind: 'raw', prompt: 'x'}, {seed: 3})).toEqual({prompt: 'x', seed: 3, logprobs: 10, stream: true, stream_options: {include_usage: true}});
  });
});
