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

class Router {
  now = $state.raw<Route>(parseRoute(location.hash));
  constructor() {
    addEventListener('hashchange', () => (this.now = parseRoute(location.hash)));
  }
  go(route: Partial<Route> & {view: View}) {
    location.hash = writeRoute(route);
  }
  // Changes what is selected without a new entry in the browser's history.
  replace(route: Partial<Route> & {view: View}) {
    history.replaceState(null, '', writeRoute(route));
    this.now = parseRoute(location.hash);
  }
}
export const router = new Router();
