// What stands beside an answer once there is one: fetched then, not with the first view.
export {messagesOf, piecesOf} from '../data/context';
export {default as Context} from './Context.svelte';
export {default as TokenStations} from './TokenStations.svelte';
