/** Reads the rows of a statement as they arrive, up to a cap. Columns stay as Arrow has them. */

import { RecordBatchReader, type RecordBatch, type Schema, type Vector } from "apache-arrow";
import { ARROW, send } from "../api/client";

/** Rows that a tab keeps. The statement is cancelled once they are there. */
export const MOST_ROWS = 1_000_000;
const MOST_BYTES = 160 * 1024 * 1024;
/** The page may draw and answer after each slice of reading, and shows how many rows there are this often. */
const SLICE_MS = 12;
const SHOW_MS = 150;
const LONGEST_FRAME_MS = 200;
const FIRST_PAUSE_MS = 100;

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
  headers?: Record<string, string>;
  signal: AbortSignal;
}

/** Yield the result as it grows. The last one is done. */
export async function* readResult({ path, sql, parameters, headers: given, signal }: Asked): AsyncGenerator<Result> {
  const stop = new AbortController();
  const either = AbortSignal.any([signal, stop.signal]);
  const headers = { ...given, ...(isNear(location.hostname) ? { "cache-control": "no-cache, no-transform" } : {}) };
  const response =
    path !== undefined
      ? await send(path, { accept: ARROW, headers, signal: either })
      : parameters === undefined
        ? await send("v1/sql", { body: sql ?? "", accept: ARROW, headers, signal: either })
        : await send("v1/sql", { json: { sql, parameters }, accept: ARROW, headers, signal: either });
  if (response.body === null) throw new Error("the answer has no rows");
  let broken: unknown = null;
  const parts = partsOf(response.body, (error) => { broken = error; });
  const reader = await RecordBatchReader.from(parts);
  await reader.open();
  if ((reader.schema as Schema | undefined) === undefined) throw new Error("the answer has no schema");
  const result: Result = {
    schema: reader.schema, batches: [], begins: [], rows: 0, bytes: 0, isCut: false, isDone: false,
  };
  yield result;
  let shownAt = performance.now();
  let pausedAt = shownAt;
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
    const isFirst = result.batches.length === 1;
    if (isFirst || performance.now() - shownAt > SHOW_MS) {
      yield { ...result };
      shownAt = performance.now();
    }
    if (isFirst) await drawn();
    else if (performance.now() - pausedAt > SLICE_MS) await turn();
    else continue;
    pausedAt = performance.now();
  }
  if (!result.isCut && broken !== null) throw broken;
  yield { ...result, isDone: true };
}

/** Yield the parts of a body, and note why it broke: Arrow takes a stream that breaks for one that ends. */
async function* partsOf(body: ReadableStream<Uint8Array>, note: (error: unknown) => void): AsyncGenerator<Uint8Array> {
  const reader = body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } catch (error) {
    note(error);
  } finally {
    void reader.cancel().catch(() => undefined);
  }
}

/** Return whether a host is this machine: compressing rows takes longer than sending them. */
export function isNear(host: string): boolean {
  return host === "localhost" || host === "[::1]" || /^127\.\d+\.\d+\.\d+$/.test(host);
}

/** Wait until the page had its turn. */
function turn(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve));
}

/** Wait until the page has drawn its first rows and the browser had time for them: what sends more is held meanwhile. */
function drawn(): Promise<void> {
  return new Promise((resolve) => {
    // A hidden page draws no frame.
    const timer = setTimeout(resolve, LONGEST_FRAME_MS);
    requestAnimationFrame(() => {
      clearTimeout(timer);
      setTimeout(resolve, FIRST_PAUSE_MS);
    });
  });
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
