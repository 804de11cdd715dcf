/** Files of a result. */

import { ARROW, send } from "../api/client";

export const FORMATS = [
  { name: "CSV", accept: "text/csv", ending: "csv" },
  { name: "JSON", accept: "application/json", ending: "json" },
  { name: "Arrow", accept: ARROW, ending: "arrows" },
  { name: "Parquet", accept: "application/vnd.apache.parquet", ending: "parquet" },
] as const;
export type Format = (typeof FORMATS)[number];

const POLL_MS = 300;

/** Run a statement again, and save all of its rows. Parquet is made by a job. */
export async function exportRows(sql: string, format: Format, signal: AbortSignal): Promise<void> {
  const response =
    format.name === "Parquet"
      ? await jobRows(sql, format.accept, signal)
      : await send("v1/sql", { body: sql, accept: format.accept, signal });
  save(await response.blob(), `result.${format.ending}`);
}

async function jobRows(sql: string, accept: string, signal: AbortSignal): Promise<Response> {
  const submitted = (await (await send("v1/queries", { json: { sql }, signal })).json()) as {
    query_id: string;
  };
  await untilDone(submitted.query_id, signal);
  return send(`v1/queries/${submitted.query_id}/results`, { accept, signal });
}

interface JobStatus {
  status: string;
  error?: { message?: string } | string | null;
}

/** Wait until a job has succeeded. */
export async function untilDone(id: string, signal: AbortSignal): Promise<void> {
  for (;;) {
    const found = (await (await send(`v1/queries/${id}/status`, { signal })).json()) as JobStatus;
    if (found.status === "SUCCEEDED") return;
    if (found.status === "FAILED" || found.status === "CANCELLED") {
      const reason = typeof found.error === "string" ? found.error : found.error?.message;
      throw new Error(reason ?? `the query was ${found.status.toLowerCase()}`);
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    signal.throwIfAborted();
  }
}

export function save(blob: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
