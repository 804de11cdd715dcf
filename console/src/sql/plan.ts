/** Reads the text of EXPLAIN as a tree. */

export interface PlanNode {
  name: string;
  detail: string;
  metrics: [string, string][];
  children: PlanNode[];
  /** Of a stage that runs: its state, the part of its tasks that is done, and a line about it. */
  state?: string;
  share?: number;
  summary?: string;
}

/** Return the roots of a plan: each line is a node, below the nearest one that is indented less. */
export function parsePlan(text: string): PlanNode[] {
  const roots: PlanNode[] = [];
  const open: { depth: number; node: PlanNode }[] = [];
  for (const line of text.split("\n")) {
    if (line.trim() === "") continue;
    const depth = line.length - line.trimStart().length;
    const node = parseLine(line.trim());
    while (open.length > 0 && (open[open.length - 1]?.depth ?? 0) >= depth) open.pop();
    const parent = open[open.length - 1]?.node;
    (parent?.children ?? roots).push(node);
    open.push({ depth, node });
  }
  return roots;
}

function parseLine(line: string): PlanNode {
  const cut = line.lastIndexOf(", metrics=[");
  const words = cut < 0 ? line : line.slice(0, cut);
  const metrics = cut < 0 ? "" : line.slice(cut + ", metrics=[".length).replace(/\]$/, "");
  const colon = words.indexOf(":");
  return {
    name: colon < 0 ? words : words.slice(0, colon),
    detail: colon < 0 ? "" : words.slice(colon + 1).trim(),
    metrics: metrics
      .split(/, (?=[a-z_0-9]+=)/)
      .filter((each) => each.includes("="))
      .map((each) => [each.slice(0, each.indexOf("=")), each.slice(each.indexOf("=") + 1)]),
    children: [],
  };
}

export interface Placed {
  node: PlanNode;
  x: number;
  y: number;
  parent: Placed | null;
}

/** Place the nodes of a tree: each level in a row, a parent over the middle of its children. */
export function placePlan(roots: PlanNode[]): { placed: Placed[]; columns: number; levels: number } {
  const placed: Placed[] = [];
  let next = 0;
  let levels = 0;
  const place = (node: PlanNode, level: number, parent: Placed | null): Placed => {
    const own: Placed = { node, x: 0, y: level, parent };
    placed.push(own);
    levels = Math.max(levels, level + 1);
    const children = node.children.map((child) => place(child, level + 1, own));
    const first = children[0];
    const last = children[children.length - 1];
    own.x = first && last ? (first.x + last.x) / 2 : next++;
    return own;
  };
  for (const root of roots) place(root, 0, null);
  return { placed, columns: Math.max(next, 1), levels };
}
