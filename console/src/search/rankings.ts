/** The rankings behind a search, each by one index, and what they add to the score of a row. */

import { fetchJson } from "../api/client";
import { quoteName } from "../api/queries";
import type { TableDetails } from "../api/types";

/** The constant of reciprocal rank fusion, and how many rows a ranking gives to it at least. */
const K = 60;
const MOST = 100;

export interface Ranking {
  kind: "vector" | "text";
  column: string;
}

export interface Ranked {
  ranking: Ranking;
  rows: Record<string, unknown>[];
}

export interface Part {
  ranking: Ranking;
  /** Its place in the ranking, from 1; null if it is not among the best. */
  rank: number | null;
  score: number | null;
  share: number;
}

/** Return the rankings of a table: one for each column with vectors, and one for each with words. */
export function rankingsOf(details: TableDetails): Ranking[] {
  return details.indexes.flatMap((each) =>
    each.kind === "vector" || each.kind === "text" ? each.columns.map((column): Ranking => ({ kind: each.kind as Ranking["kind"], column })) : [],
  );
}

export function keyOf(details: TableDetails): string[] {
  return details.indexes.find((each) => each.kind === "primary key")?.columns ?? [];
}

/** Return the statement of one ranking; the text is its parameter. */
export function statementOf(table: string, { kind, column }: Ranking, columns: string[], where: string, limit = MOST): string {
  const name = table.split(".").map(quoteName).join(".");
  const shown = [...new Set([...columns, column])].map(quoteName).join(", ");
  const condition = where.trim() === "" ? "" : ` WHERE (${where})`;
  return `SELECT ${shown}, score FROM ${kind}_search(${name}, $1, col => ${quoteName(column)}, limit => ${limit})${condition} ORDER BY score DESC LIMIT ${limit}`;
}

export async function rank(
  details: TableDetails, ranking: Ranking, text: string, where: string, signal?: AbortSignal, limit = MOST,
): Promise<Ranked> {
  const sql = statementOf(details.name, ranking, keyOf(details), where, limit);
  return { ranking, rows: await fetchJson<Record<string, unknown>[]>("v1/sql", { json: { sql, parameters: [text] }, signal }) };
}

/** Return what each ranking adds to the score of a row. */
export function partsOf(rankings: Ranked[], key: Record<string, unknown>): Part[] {
  const names = Object.keys(key);
  return rankings.map(({ ranking, rows }) => {
    const at = rows.findIndex((row) => names.every((name) => String(row[name]) === String(key[name])));
    const score = at < 0 ? null : Number(rows[at]?.score);
    return { ranking, rank: at < 0 ? null : at + 1, score, share: at < 0 ? 0 : 1 / (K + at + 1) };
  });
}

/** Cut a text at the passages that matched, each marked. */
export function marked(text: string, passages: string[]): { text: string; isMatch: boolean }[] {
  const spans = passages
    .filter((each) => each !== "")
    .map((each): [number, number] => [text.indexOf(each), each.length])
    .filter(([at]) => at >= 0)
    .map(([at, length]): [number, number] => [at, at + length])
    .sort((a, b) => a[0] - b[0]);
  const found: { text: string; isMatch: boolean }[] = [];
  let done = 0;
  for (const [begin, end] of spans) {
    if (end <= done) continue;
    if (begin > done) found.push({ text: text.slice(done, begin), isMatch: false });
    found.push({ text: text.slice(Math.max(begin, done), end), isMatch: true });
    done = end;
  }
  if (done < text.length) found.push({ text: text.slice(done), isMatch: false });
  return found;
}
