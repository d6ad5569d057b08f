// Saves an answer of the server as a file: with the key, which a link could not send.
import {call} from './api';

export async function download(path: string, name: string): Promise<void> {
  const blob = await (await call(path)).blob();
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
