// What the page and its worker say to each other.
import type {Blocked} from './api';
import type {TableJson} from './events';
import type {CurvePoint, Hole, Quantiles, RateBucket} from './meter';
import type {poolOf, Sequence} from './reduce';

// stream: as it happens; poll: asked for twice a second; recorded: from a file.
export type Mode = 'connecting' | 'stream' | 'poll' | 'lost' | 'locked' | 'recorded';

export type PoolNow = ReturnType<typeof poolOf>;
export interface Summary {
  mode: Mode;
  epoch: string;
  seq: number;
  now: number; // ns
  span: {first: number; last: number; now: number}; // ns: what is kept, and what is shown of it
  paused: boolean;
  lost: number;
  policy: string;
  seats: number;
  stepTokens: number;
  maxQueue: number;
  blocked: Blocked | null;
  others: {running: number; waiting: number};
  known: boolean;
  running: Sequence[];
  waiting: Sequence[];
  pools: PoolNow[];
  rates: RateBucket[];
  holes: Hole[]; // in them
  ttft: Quantiles;
  itl: Quantiles;
  curve: CurvePoint[];
  tables: TableJson[] | null; // null: nobody asked for them
}
// Of a group: all pages, or those of `index`.
export interface PagePart {
  window: number;
  pageSize: number;
  total: number;
  index: Uint32Array | null;
  state: Uint8Array;
  holders: Uint16Array;
  fill: Uint16Array;
}
export interface Want {
  steps: boolean;
  pages: boolean;
  tables: boolean;
}
export type ToWorker =
  | {type: 'watch'; on: boolean; key: string; again?: boolean}
  | {type: 'want'; want: Want}
  | {type: 'ack'}
  | {type: 'pause'; on: boolean}
  | {type: 'seek'; at: number}
  | {type: 'moment'; seq: number}
  | {type: 'file'; file: File}
  | {type: 'live'};
export type FromWorker =
  | {type: 'frame'; steps?: {reset: boolean; heads: Float64Array; entries: Float64Array; counts: Uint32Array}; pages?: PagePart[]; summary?: Summary}
  | {type: 'status'; mode: Mode; message: string; restarted: boolean; allowed: boolean}
  | {type: 'refused'; message: string};
