/** Statements of a text, and the places that errors name. */

export interface Found {
  text: string;
  begin: number;
}

/** Return the statement at a place of a text with several, which semicolons end. */
export function statementAt(text: string, at: number): Found {
  const ends = semicolons(text);
  let begin = 0;
  for (const end of ends) {
    const isBlank = text.slice(begin, end).trim() === "";
    if (at <= end + 1 && !isBlank) return trimmed(text, begin, end);
    if (text.slice(end + 1).trim() === "" && !isBlank) return trimmed(text, begin, end);
    begin = end + 1;
  }
  return trimmed(text, begin, text.length);
}

function trimmed(text: string, begin: number, end: number): Found {
  const part = text.slice(begin, end);
  const left = part.length - part.trimStart().length;
  return { text: part.trim(), begin: begin + left };
}

/** Return the places of semicolons that are in no text, name or comment. */
export function semicolons(text: string): number[] {
  const found: number[] = [];
  const tokens = /'(?:[^']|'')*'?|"(?:[^"]|"")*"?|--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|\$(\w*)\$[\s\S]*?(?:\$\1\$|$)|;/g;
  for (const match of text.matchAll(tokens)) {
    if (match[0] === ";") found.push(match.index);
  }
  return found;
}

/** Return the place that an error names, as offsets in the text of the editor. */
export function placeIn(message: string, statement: string, begin: number): { from: number; to: number } | null {
  const named = /at Line: (\d+), Column: (\d+)/i.exec(message);
  if (named) {
    const lines = statement.split("\n");
    const line = Number(named[1]) - 1;
    const before = lines.slice(0, line).reduce((sum, each) => sum + each.length + 1, 0);
    const from = begin + before + Number(named[2]) - 1;
    const word = /^\S+/.exec(statement.slice(from - begin))?.[0].length ?? 1;
    return { from, to: from + word };
  }
  const quoted = /(?:table|column|function) '([^']+)'/.exec(message)?.[1];
  if (quoted === undefined) return null;
  const at = statement.toLowerCase().indexOf(quoted.toLowerCase());
  return at < 0 ? null : { from: begin + at, to: begin + at + quoted.length };
}
