// A file of the server, saved by the browser: fetched with the key, which a link could not send.
import {call} from './api';

export async function saveFile(path: string, name: string): Promise<void> {
  const file = await (await call(path)).blob();
  const link = document.createElement('a');
  link.href = URL.createObjectURL(file);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
