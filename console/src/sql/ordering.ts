/** The order of fetched rows: which of them are shown, sorted by which column. */

import type { Field } from "apache-arrow";
import type { Result } from "./results";
import { isNumeric, isTemporal, numberOf, shownText } from "./values";

export interface Sorting {
  column: number;
  isDescending: boolean;
}

/** Return the rows that contain a text in any column. `undefined`: all of them. */
export function filteredRows(result: Result, text: string): Uint32Array | undefined {
  const wanted = text.trim().toLowerCase();
  if (wanted === "") return undefined;
  const rows = new Uint32Array(result.rows);
  let count = 0;
  const fields = result.schema.fields;
  for (const [batch, part] of result.batches.entries()) {
    const begin = result.begins[batch] ?? 0;
    const vectors = fields.map((_, column) => part.getChildAt(column));
    for (let at = 0; at < part.numRows; at += 1) {
      const isIn = vectors.some((vector, column) =>
        shownText(vector?.get(at), fields[column] as Field).toLowerCase().includes(wanted),
      );
      if (isIn) rows[count++] = begin + at;
    }
  }
  return rows.slice(0, count);
}

/** Return rows in the order of a column; nulls come last. */
export function sortedRows(result: Result, sorting: Sorting, among?: Uint32Array): Uint32Array {
  const rows = among?.slice() ?? Uint32Array.from({ length: result.rows }, (_, row) => row);
  const field = result.schema.fields[sorting.column] as Field;
  const sign = sorting.isDescending ? -1 : 1;
  const isNumber = isNumeric(field) || isTemporal(field);
  const keys: (number | string | null)[] = new Array(result.rows);
  for (const [batch, part] of result.batches.entries()) {
    const vector = part.getChildAt(sorting.column);
    const begin = result.begins[batch] ?? 0;
    for (let at = 0; at < part.numRows; at += 1) {
      const value: unknown = vector?.get(at) ?? null;
      keys[begin + at] = value === null ? null : isNumber ? numberOf(value, field) : shownText(value, field);
    }
  }
  return rows.sort((left, right) => {
    const a = keys[left] ?? null;
    const b = keys[right] ?? null;
    if (a === null || b === null) return a === b ? left - right : a === null ? 1 : -1;
    return a < b ? -sign : a > b ? sign : left - right;
  });
}
