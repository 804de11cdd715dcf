/** Reads the rows of a statement as they arrive, up to a cap. Columns stay as Arrow has them. */

import { RecordBatchReader, type RecordBatch, type Schema, type Vector } from "apache-arrow";
import { ARROW, send } from "../api/client";

/** Rows that a tab keeps. The statement is cancelled once they are there. */
export const MOST_ROWS = 1_000_000;
const MOST_BYTES = 160 * 1024 * 1024;

export interface Result {
  schema: Schema;
  batches: RecordBatch[];
  /** The first row of each batch. */
  begins: number[];
  rows: number;
  bytes: number;
  /** True if the statement had more rows than are kept. */
  isCut: boolean;
  isDone: boolean;
}

export interface Asked {
  path?: string;
  sql?: string;
  parameters?: unknown;
  signal: AbortSignal;
}

/** Yield the result as it grows. The last one is done. */
export async function* readResult({ path, sql, parameters, signal }: Asked): AsyncGenerator<Result> {
  const stop = new AbortController();
  const either = AbortSignal.any([signal, stop.signal]);
  const response =
    path !== undefined
      ? await send(path, { accept: ARROW, signal: either })
      : parameters === undefined
        ? await send("v1/sql", { body: sql ?? "", accept: ARROW, signal: either })
        : await send("v1/sql", { json: { sql, parameters }, accept: ARROW, signal: either });
  if (response.body === null) throw new Error("the answer has no rows");
  const reader = await RecordBatchReader.from(response.body);
  await reader.open();
  const result: Result = {
    schema: reader.schema, batches: [], begins: [], rows: 0, bytes: 0, isCut: false, isDone: false,
  };
  yield result;
  let shownAt = performance.now();
  for await (const batch of reader as AsyncIterable<RecordBatch>) {
    const left = MOST_ROWS - result.rows;
    const kept = batch.numRows > left ? batch.slice(0, left) : batch;
    result.isCut = kept !== batch || result.bytes >= MOST_BYTES;
    if (kept.numRows > 0 && result.bytes < MOST_BYTES) {
      result.begins.push(result.rows);
      result.batches.push(kept);
      result.rows += kept.numRows;
      result.bytes += kept.data.byteLength;
    }
    if (result.isCut) {
      stop.abort();
      break;
    }
    if (result.batches.length === 1 || performance.now() - shownAt > 100) {
      yield { ...result };
      // The page draws what is there before more is read.
      await new Promise((resolve) => setTimeout(resolve));
      shownAt = performance.now();
    }
  }
  yield { ...result, isDone: true };
}

/** Return the place of a row: its batch, and its row there. */
export function placeOf(result: Pick<Result, "begins">, row: number): [number, number] {
  let low = 0;
  let high = result.begins.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((result.begins[middle] ?? 0) <= row) low = middle;
    else high = middle - 1;
  }
  return [low, row - (result.begins[low] ?? 0)];
}

export function columnOf(result: Result, batch: number, column: number): Vector | null {
  return result.batches[batch]?.getChildAt(column) ?? null;
}

export function valueAt(result: Result, column: number, row: number): unknown {
  const [batch, at] = placeOf(result, row);
  return columnOf(result, batch, column)?.get(at) ?? null;
}
