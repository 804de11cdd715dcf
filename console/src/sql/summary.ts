/** What is in a column of fetched rows. */

import type { Field } from "apache-arrow";
import type { Result } from "./results";
import { isNumeric, isTemporal, numberOf, shownText } from "./values";

const BINS = 20;
const MOST_DISTINCT = 100_000;

export interface Summary {
  rows: number;
  nulls: number;
  /** `null`: more than are counted. */
  distinct: number | null;
  least: string;
  most: string;
  /** Counts of equal ranges from the least value to the largest one; empty if they are no numbers. */
  bins: number[];
  frequent: { text: string; count: number }[];
}

export function summarize(result: Result, column: number): Summary {
  const field = result.schema.fields[column] as Field;
  const isNumber = isNumeric(field) || isTemporal(field);
  const counts = new Map<string, number>();
  const numbers: number[] = [];
  let nulls = 0;
  let least: [number | string, string] | null = null;
  let most: [number | string, string] | null = null;
  for (const batch of result.batches) {
    const vector = batch.getChildAt(column);
    for (let at = 0; at < batch.numRows; at += 1) {
      const value: unknown = vector?.get(at) ?? null;
      if (value === null) {
        nulls += 1;
        continue;
      }
      const text = shownText(value, field);
      if (counts.size < MOST_DISTINCT || counts.has(text)) counts.set(text, (counts.get(text) ?? 0) + 1);
      const key = isNumber ? numberOf(value, field) : text;
      if (key === null || Number.isNaN(key)) continue;
      if (typeof key === "number") numbers.push(key);
      if (least === null || key < least[0]) least = [key, text];
      if (most === null || key > most[0]) most = [key, text];
    }
  }
  return {
    rows: result.rows,
    nulls,
    distinct: counts.size < MOST_DISTINCT ? counts.size : null,
    least: least?.[1] ?? "",
    most: most?.[1] ?? "",
    bins: binned(numbers),
    frequent: [...counts]
      .sort((a, b) => b[1] - a[1])
      .slice(0, 5)
      .map(([text, count]) => ({ text, count })),
  };
}

export function binned(numbers: number[]): number[] {
  let low = Infinity;
  let high = -Infinity;
  for (const each of numbers) {
    if (!Number.isFinite(each)) continue;
    if (each < low) low = each;
    if (each > high) high = each;
  }
  if (!(high > low)) return [];
  const bins = new Array<number>(BINS).fill(0);
  for (const each of numbers) {
    if (!Number.isFinite(each)) continue;
    const at = Math.min(BINS - 1, Math.floor(((each - low) / (high - low)) * BINS));
    bins[at] = (bins[at] ?? 0) + 1;
  }
  return bins;
}
