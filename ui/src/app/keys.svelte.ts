// Keys that are a single character may be turned off, for those who speak to their computer or press keys unmeant.
const kName = 'vitrine.keys';

class SingleKeys {
  on = $state(localStorage.getItem(kName) !== 'off');
  set(on: boolean) {
    this.on = on;
    localStorage.setItem(kName, on ? 'on' : 'off');
  }
}
export const singleKeys = new SingleKeys();

export function typing(event: KeyboardEvent): boolean {
  const {target} = event;
  return target instanceof HTMLElement && (target.matches('input:not([type=checkbox], [type=range], [type=file]), textarea, select') || target.isContentEditable);
}
// Before anybody else hears them. What the browser does with them, a space on a button, is as ever.
addEventListener('keydown', (event) => {
  if (!singleKeys.on && event.key.length === 1 && !typing(event) && !event.ctrlKey && !event.metaKey && !event.altKey) event.stopImmediatePropagation();
}, true);
