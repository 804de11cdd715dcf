/** Completes manifests by their JSON Schema: keys where a key goes, values where a value goes. */

export interface Schema {
  $ref?: string;
  $defs?: Record<string, Schema>;
  anyOf?: Schema[];
  properties?: Record<string, Schema>;
  additionalProperties?: boolean | Schema;
  items?: Schema;
  enum?: unknown[];
  const?: unknown;
  type?: string;
  default?: unknown;
  required?: string[];
}
export interface Choice {
  label: string;
  detail: string;
  /** What is written. */
  apply: string;
}
export interface Completion {
  from: number;
  choices: Choice[];
}

const ITEM = "[]";
const KEY = /^("[^"]*"|'[^']*'|[^\s:#'"[\]{},-][^:#]*?)\s*:(\s|$)/;

interface Entry {
  indent: number;
  /** A key, or `[]` for an item of a list. */
  name: string;
}

/** Return what may be written at a position of a text; null if nothing is known. */
export function complete(root: Schema, text: string, position: number): Completion | null {
  const lines = text.slice(0, position).split("\n");
  const line = lines.pop() ?? "";
  if (/(^|\s)#|:$/.test(line)) return null;
  const entries = entriesOf(line);
  const rest = restOf(line);
  const indent = line.length - rest.length;
  const isBelowItem = entries[0]?.name === ITEM;
  const path = [...parents(lines, entries[0]?.indent ?? indent, isBelowItem), ...entries.map((each) => each.name)];
  const last = path[path.length - 1];
  const isValue = entries.length > 0 && last !== ITEM;
  const used = isValue ? new Set<string>() : siblings(isBelowItem ? [] : lines, text.slice(position).split("\n").slice(1), indent);
  const choices = at(root, path).flatMap((each) => {
    if (isValue || each.type !== "array") return [...valuesOf(each), ...(isValue ? [] : keysOf(root, each, used))];
    const items = each.items === undefined ? [] : alternatives(root, each.items);
    return items.flatMap((item) => [...valuesOf(item), ...keysOf(root, item, new Set())]).map((one) => ({ ...one, apply: `- ${one.apply}` }));
  });
  const once = choices.filter((each, number) => choices.findIndex((other) => other.label === each.label) === number);
  return once.length > 0 ? { from: position - rest.length, choices: once } : null;
}

/** Return the schemas of the value at a path. */
export function at(root: Schema, path: string[]): Schema[] {
  let found = alternatives(root, root);
  for (const name of path) {
    found = found.flatMap((each) => {
      const inner = name === ITEM ? each.items : (each.properties?.[name] ?? additional(each));
      return inner === undefined ? [] : alternatives(root, inner);
    });
  }
  return found;
}

function additional(schema: Schema): Schema | undefined {
  return typeof schema.additionalProperties === "object" ? schema.additionalProperties : undefined;
}

/** Return a schema as what it refers to, or as each of what it may be. */
function alternatives(root: Schema, schema: Schema): Schema[] {
  if (schema.$ref !== undefined) {
    const found = root.$defs?.[schema.$ref.replace("#/$defs/", "")];
    return found === undefined ? [] : alternatives(root, found);
  }
  if (schema.anyOf !== undefined) {
    return schema.anyOf.flatMap((each) => alternatives(root, each).map((one) => ({ default: schema.default, ...one })));
  }
  return [schema];
}

function valuesOf(schema: Schema): Choice[] {
  const values = schema.enum ?? (schema.const !== undefined ? [schema.const] : schema.type === "boolean" ? [true, false] : []);
  return values.map((value) => ({ label: String(value), detail: value === schema.default ? "default" : "", apply: String(value) }));
}

function keysOf(root: Schema, schema: Schema, used: Set<string>): Choice[] {
  return Object.entries(schema.properties ?? {})
    .filter(([name]) => !used.has(name))
    .map(([name, value]) => {
      const kinds = alternatives(root, value);
      const isNested = kinds.some((each) => each.properties !== undefined || each.items !== undefined);
      return { label: name, detail: detailOf(kinds, schema.required?.includes(name) ?? false), apply: isNested ? `${name}:` : `${name}: ` };
    });
}

function detailOf(kinds: Schema[], isRequired: boolean): string {
  const words = kinds.map((each) => {
    if (each.enum !== undefined) return each.enum.join(" | ");
    if (each.items !== undefined) return "list";
    if (each.properties !== undefined || each.type === "object") return "section";
    return each.type === "null" ? "" : (each.type ?? "");
  });
  const shown = [...new Set(words)].filter(Boolean).join(" | ");
  return isRequired ? `${shown} (required)`.trim() : shown;
}

/** Return the keys and items that a line has before its value, with where each begins. */
function entriesOf(line: string): Entry[] {
  const found: Entry[] = [];
  let indent = indentOf(line);
  let rest = line.slice(indent);
  for (let dash = /^-(\s+|$)/.exec(rest); dash !== null; dash = /^-(\s+|$)/.exec(rest)) {
    found.push({ indent, name: ITEM });
    indent += dash[0].length;
    rest = rest.slice(dash[0].length);
  }
  const key = KEY.exec(rest);
  if (key?.[1] !== undefined) found.push({ indent, name: key[1].replace(/^["']|["']$/g, "") });
  return found;
}

/** Return what a line has behind its keys and dashes. */
function restOf(line: string): string {
  let rest = line.slice(indentOf(line)).replace(/^(-\s+)+/, "");
  rest = rest.replace(KEY, "");
  return rest.trimStart();
}

function indentOf(line: string): number {
  return line.length - line.trimStart().length;
}

/** Return the keys and items that a place with an indentation is below. */
function parents(lines: string[], indent: number, startsBelowItem: boolean): string[] {
  const path: string[] = [];
  let limit = indent;
  let isBelowItem = startsBelowItem;
  for (const line of [...lines].reverse()) {
    if (limit === 0 && !isBelowItem) break;
    if (isEmpty(line)) continue;
    for (const entry of entriesOf(line).reverse()) {
      // The items of a list may be as far left as its key.
      const isKey = entry.name !== ITEM;
      if (entry.indent >= limit && !(isBelowItem && isKey && entry.indent === limit)) continue;
      path.unshift(entry.name);
      limit = entry.indent;
      isBelowItem = !isKey;
    }
  }
  return path;
}

/** Return the keys that the section at an indentation has already. */
function siblings(before: string[], after: string[], indent: number): Set<string> {
  const used = new Set<string>();
  for (const lines of [[...before].reverse(), after]) {
    for (const line of lines.filter((each) => !isEmpty(each))) {
      const entries = entriesOf(line);
      const key = entries[entries.length - 1];
      const isOfNextItem = lines === after && entries.length > 1;
      if (key?.indent === indent && key.name !== ITEM && !isOfNextItem) used.add(key.name);
      // What is further left ends the section.
      if (indentOf(line) < indent) break;
    }
  }
  return used;
}

function isEmpty(line: string): boolean {
  const text = line.trimStart();
  return text === "" || text.startsWith("#");
}
