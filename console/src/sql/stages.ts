/** The stages of a running statement, and the graph of them. */

import { send } from "../api/client";
import { readEvents } from "../api/events";
import type { Stage } from "../api/types";
import { formatBytes, formatMs, formatNumber } from "../parts/format";
import type { PlanNode } from "./plan";

const AGAIN_MS = 1_000;

/** Return an id of a trace, which names a statement before the runtime has answered. */
export function newTrace(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Return the header that gives a request its trace. */
export function traceHeader(trace: string): Record<string, string> {
  return { traceparent: `00-${trace}-${trace.slice(16)}-01` };
}

/** Show the stages of a statement or a job with each change, until the signal. */
export async function followStages(id: string, signal: AbortSignal, show: (stages: Stage[]) => void): Promise<void> {
  while (!signal.aborted) {
    const response = await send(`v1/sql/${encodeURIComponent(id)}/stages`, { accept: "text/event-stream", signal });
    for await (const event of readEvents(response)) {
      if (event.name === "stages") show((JSON.parse(event.data) as { stages: Stage[] }).stages);
    }
    // A job that waits has no stages yet.
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
  }
}

/** Return the roots of the graph: the last stage, over those that it reads. */
export function planOf(stages: Stage[]): PlanNode[] {
  const byName = new Map(stages.map((each) => [each.name, each]));
  const isRead = new Set(stages.flatMap((each) => each.reads));
  const placed = new Set<string>();
  const node = (stage: Stage): PlanNode => {
    placed.add(stage.name);
    const children: PlanNode[] = [];
    for (const name of stage.reads) {
      const read = byName.get(name);
      // A stage that two others read is drawn once.
      if (read !== undefined && !placed.has(name)) children.push(node(read));
    }
    return { ...described(stage), children };
  };
  return stages.filter((each) => !isRead.has(each.name)).reverse().map(node);
}

function described(stage: Stage): Omit<PlanNode, "children"> {
  const took = stage.began_at_ms != null && stage.ended_at_ms != null ? formatMs(stage.ended_at_ms - stage.began_at_ms) : null;
  return {
    name: stage.note || stage.name,
    detail: [stage.name, ...(stage.tables.length > 0 ? [`reads ${stage.tables.join(", ")}`] : [])].join(", "),
    state: stage.state,
    share: stage.tasks_total > 0 ? stage.tasks_done / stage.tasks_total : 0,
    summary: stage.state === "waiting" ? "waits" : `${stage.tasks_done} of ${stage.tasks_total} · ${formatNumber(stage.rows)} rows`,
    metrics: [
      ["state", stage.state],
      ["tasks", `${stage.tasks_done} of ${stage.tasks_total}`],
      ["rows", formatNumber(stage.rows)],
      ["size", formatBytes(stage.bytes)],
      ...(took === null ? [] : [["time", took] as [string, string]]),
      ...stage.executors.map((each): [string, string] => [
        each.executor_id ?? "scheduler",
        `${each.tasks} tasks, ${formatNumber(each.rows)} rows, ${formatBytes(each.bytes)}, ${formatMs(each.elapsed_ms)}`,
      ]),
    ],
  };
}
