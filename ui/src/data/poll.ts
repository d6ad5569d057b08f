// Asks again and again while somebody watches; never twice at once.
export class Poll {
  private watchers = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;

  // `ask` says after how many ms it wants to be called again; null: never.
  constructor(private readonly ask: () => Promise<number | null>) {}

  // Until what it returns is called.
  watch(): () => void {
    if (++this.watchers === 1) void this.turn();
    return () => {
      if (--this.watchers === 0) clearTimeout(this.timer);
    };
  }

  private async turn() {
    const after = await this.ask();
    if (after !== null && this.watchers > 0) this.timer = setTimeout(() => void this.turn(), after);
  }
}
