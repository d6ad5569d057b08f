// The prefix cache as a tree: a node is a run of pages that has no branch in it.
export interface TreeNode {
  depth: number;
  tokens: number; // in this node
  before: number; // tokens from the root to it
  pages: number;
  holders: number; // sequences that hold its pages now
  used_ns: number | null; // when it was last found or held
  text: string | null; // null: this key may not see it
  branches: number;
}

interface Told {
  parent?: number | null;
  first?: number; // position of its first token
  tokens?: number;
  pages?: number;
  holders?: number;
  last_use_ns?: number;
  text?: string | null;
  children?: Told[];
}

const kMost = 500, kDeepest = 64;

// Of the server's reply, in the order of a walk: parents before their children.
export function treeOf(reply: unknown): TreeNode[] {
  const told = reply as {nodes?: Told[]; tree?: Told[]; children?: Told[]} | null;
  let roots: Told[] = told?.tree ?? told?.children ?? [];
  if (told?.nodes) {
    // Flat: `parent` is the place of the parent in the list; null: none.
    const made = told.nodes.map((node) => ({...node, children: [...(node.children ?? [])]}));
    roots = [];
    made.forEach((node, i) => {
      const parent = typeof node.parent === 'number' && node.parent !== i ? made[node.parent] : undefined;
      if (parent) parent.children.push(node);
      else roots.push(node);
    });
  }
  const out: TreeNode[] = [];
  const walk = (list: readonly Told[], depth: number, before: number) => {
    for (const node of [...list].sort((a, b) => (b.tokens ?? 0) - (a.tokens ?? 0))) {
      if (out.length >= kMost || depth > kDeepest) return;
      const tokens = node.tokens ?? 0, children = node.children ?? [];
      out.push({
        depth, tokens, before: node.first ?? before, pages: node.pages ?? 0, holders: node.holders ?? 0,
        used_ns: node.last_use_ns ?? null, text: node.text ?? null, branches: children.length,
      });
      walk(children, depth + 1, before + tokens);
    }
  };
  walk(roots, 0, 0);
  return out;
}

export function wholeOf(reply: unknown, nodes: readonly TreeNode[]): {tokens: number; pages: number} {
  const told = reply as {tokens?: number; pages?: number} | null;
  const sum = (of: (n: TreeNode) => number) => nodes.reduce((out, n) => out + of(n), 0);
  return {tokens: told?.tokens ?? sum((n) => n.tokens), pages: told?.pages ?? sum((n) => n.pages)};
}
