// The URL is the only place of selection: #/view/argument?name=value. A link shows the same view again.
export const views = ['ask', 'request', 'engine', 'lab', 'journey', 'model'] as const;
export type View = (typeof views)[number];

export interface Route {
  view: View;
  argument: string;
  query: Record<string, string>;
}

export function parseRoute(hash: string): Route {
  const [path = '', search = ''] = hash.replace(/^#\/?/, '').split('?', 2);
  const [view = '', ...rest] = path.split('/');
  const known = views.find((v) => v === view);
  return {
    view: known ?? 'ask',
    argument: known ? decode(rest.join('/')) : '',
    query: Object.fromEntries(new URLSearchParams(search)),
  };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function writeRoute(route: Partial<Route> & {view: View}): string {
  const search = new URLSearchParams(Object.entries(route.query ?? {}).filter(([, value]) => value !== '')).toString();
  const argument = route.argument ? `/${encodeURIComponent(route.argument)}` : '';
  return `#/${route.view}${argument}${search ? `?${search}` : ''}`;
}

const kWriteMs = 400;

class Router {
  now = $state.raw<Route>(parseRoute(location.hash));
  private credit = 10; // writes that may be done at once; one more every kWriteMs
  private written = 0; // ms
  private timer: ReturnType<typeof setTimeout> | undefined;
  constructor() {
    addEventListener('hashchange', () => (clearTimeout(this.timer), (this.now = parseRoute(location.hash))));
  }
  go(route: Partial<Route> & {view: View}) {
    clearTimeout(this.timer);
    location.hash = writeRoute(route);
  }
  // Changes what is selected without a new entry in the browser's history. A browser refuses a hundred such in half
  // a minute, so that the address may follow a little later.
  replace(route: Partial<Route> & {view: View}) {
    const hash = writeRoute(route), before = location.hash, now = performance.now();
    const write = () => location.hash === before && history.replaceState(null, '', hash);
    this.now = parseRoute(hash);
    clearTimeout(this.timer);
    this.credit = Math.min(10, this.credit + (now - this.written) / kWriteMs);
    this.written = now;
    if (this.credit < 1) return void (this.timer = setTimeout(write, kWriteMs));
    --this.credit;
    write();
  }
  // One name of the address, as it is otherwise. '': without it.
  select(name: string, value: string) {
    if ((this.now.query[name] ?? '') !== value) this.replace({...this.now, query: {...this.now.query, [name]: value}});
  }
}
export const router = new Router();
