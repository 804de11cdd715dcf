/** One statement of a tab: from its start to its rows, its plan or its failure. */

import { useRef, useState } from "react";
import { fetchJson, RequestError, send, selectRows } from "../api/client";
import { untilDone } from "./exporting";
import { readResult, type Result } from "./results";
import { newTrace, traceHeader } from "./stages";
import { noteRun } from "./tabs";

export interface Run {
  sql: string;
  begin: number;
  state: "running" | "done" | "failed" | "cancelled";
  ms: number;
  result: Result | null;
  plans: { plan_type: string; plan: string }[] | null;
  error: string | null;
  job: string | null;
  /** The trace of its request, by which it is found while it runs and after that. */
  trace: string;
}
export type Mode = "now" | "job" | "explain" | "analyze";

const EXPLAIN = { explain: "EXPLAIN", analyze: "EXPLAIN ANALYZE" };

/** Return the runs of tabs, and functions that begin and cancel them. */
export function useRuns() {
  const [runs, setRuns] = useState<Record<string, Run>>({});
  const controls = useRef(new Map<string, AbortController>());

  const cancel = (tab: string): void => controls.current.get(tab)?.abort();

  const begin = async (tab: string, sql: string, begin: number, mode: Mode, parameters?: unknown): Promise<void> => {
    cancel(tab);
    const control = new AbortController();
    controls.current.set(tab, control);
    const began = performance.now();
    const trace = newTrace();
    const headers = traceHeader(trace);
    const run: Run = { sql, begin, state: "running", ms: 0, result: null, plans: null, error: null, job: null, trace };
    const show = (part: Partial<Run>): void => {
      Object.assign(run, part, { ms: performance.now() - began });
      if (controls.current.get(tab) === control) setRuns((now) => ({ ...now, [tab]: { ...run } }));
    };
    show({});
    try {
      if (mode === "explain" || mode === "analyze") {
        show({ plans: await selectRows(`${EXPLAIN[mode]} ${sql}`, control.signal, headers) });
      } else if (mode === "job") {
        const { query_id } = await fetchJson<{ query_id: string }>("v1/queries", { json: { sql, parameters }, headers, signal: control.signal });
        show({ job: query_id });
        try {
          await untilDone(query_id, control.signal);
        } catch (error) {
          if (control.signal.aborted) await send(`v1/queries/${query_id}/cancel`, { method: "POST" });
          throw error;
        }
        const path = `v1/queries/${query_id}/results`;
        for await (const result of whole(readResult({ path, signal: control.signal }))) show({ result });
      } else {
        for await (const result of whole(readResult({ sql, parameters, headers, signal: control.signal }))) show({ result });
      }
      show({ state: "done" });
    } catch (error) {
      if (control.signal.aborted) show({ state: "cancelled" });
      else show({ state: "failed", error: error instanceof Error ? error.message : String(error) });
    }
    noteRun({ sql, at: new Date().toISOString(), ms: run.ms, rows: run.result?.rows ?? null, error: run.error });
  };

  return { runs, begin, cancel };
}

/** Yield results, and say what it means if their stream breaks. */
async function* whole(results: AsyncGenerator<Result>): AsyncGenerator<Result> {
  try {
    yield* results;
  } catch (error) {
    if (error instanceof RequestError || (error instanceof DOMException && error.name === "AbortError")) throw error;
    throw new Error("the rows ended early, because the runtime or an executor failed or the connection broke; those that are shown are not all: run the statement again");
  }
}
