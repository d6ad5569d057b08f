// Server-sent events out of a stream of bytes. Comments and other fields than data are skipped.
export async function* events(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader();
  try {
    let rest = '';
    let data: string[] = [];
    for (;;) {
      const {value, done} = await reader.read();
      if (done) break;
      rest += value;
      let at: number;
      while ((at = rest.indexOf('\n')) >= 0) {
        const line = rest.slice(0, at).replace(/\r$/, '');
        rest = rest.slice(at + 1);
        if (line.startsWith('data:')) data.push(line.slice(line[5] === ' ' ? 6 : 5));
        else if (line === '' && data.length) {
          yield data.join('\n');
          data = [];
        }
      }
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}
