// The tokens of a request by kind, as parts of the context.
import type {Part} from '../fig/StackBar.svelte';
import type {Turn} from './conversation.svelte';

// Of one that runs, what is known. `prompt`: tokens of its prompt, before the server tells them.
export function kindsOf(turn: Turn, prompt: number): Part[] {
  const count = (kind: string) => turn.tokens.filter((t) => t.kind === kind).length;
  const reasoning = Math.max(turn.usage?.reasoning ?? 0, count('reasoning')), tool = count('tool');
  const drawn = turn.usage?.output ?? turn.tokens.length;
  const parts: Part[] = [
    ...(turn.usage
      ? ([
          {name: 'cached', value: turn.usage.cached, of: 'request.cached_tokens', colour: 'cached'},
          {name: 'input', value: turn.usage.prompt - turn.usage.cached, of: 'request.fresh_tokens', colour: 'prefill'},
        ] as const)
      : ([{name: 'input', value: prompt, of: 'context.draft', colour: 'prefill'}] as const)),
    {name: 'output', value: Math.max(0, drawn - reasoning - tool), of: 'request.completion_tokens', colour: 'decode'},
  ];
  if (reasoning) parts.push({name: 'reasoning', value: reasoning, of: 'context.reasoning', colour: 'decode', sign: 'hatched'});
  if (tool) parts.push({name: 'tool call', value: tool, of: 'context.tool', colour: 'decode', sign: 'dashed'});
  return parts;
}
