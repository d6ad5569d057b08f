// Server-sent events out of a stream of bytes. Comments and fields that nobody here reads are skipped.
export interface Frame {
  event: string; // empty: not named
  id: string;
  data: string;
}

// The data alone.
export async function* events(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  for await (const frame of frames(body)) yield frame.data;
}

export async function* frames(body: ReadableStream<Uint8Array>): AsyncGenerator<Frame> {
  const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader();
  try {
    let rest = '';
    let data: string[] = [], event = '', id = '';
    const valueOf = (line: string, name: string) => line.slice(name.length + (line[name.length + 1] === ' ' ? 2 : 1));
    for (;;) {
      const {value, done} = await reader.read();
      if (done) break;
      rest += value;
      let at: number;
      while ((at = rest.indexOf('\n')) >= 0) {
        const line = rest.slice(0, at).replace(/\r$/, '');
        rest = rest.slice(at + 1);
        if (line.startsWith('data:')) data.push(valueOf(line, 'data'));
        else if (line.startsWith('event:')) event = valueOf(line, 'event');
        else if (line.startsWith('id:')) id = valueOf(line, 'id');
        else if (line === '') {
          if (data.length) yield {event, id, data: data.join('\n')};
          data = [];
          event = '';
        }
      }
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}
