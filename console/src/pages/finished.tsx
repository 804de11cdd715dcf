/** The history of tasks: the latest or slowest of them, and the statements that took most time. */

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { selectRows } from "../api/client";
import { quoteText } from "../api/queries";
import type { FinishedTask } from "../api/types";
import { Answer, Empty, Table, Time } from "../parts/basics";
import { formatMs, formatNumber } from "../parts/format";
import { encodeLink } from "../parts/links";
import { place } from "../parts/route";

const TASKS = ["sql_query", "search", "nsql", "ai_chat", "ai_completion", "text_embed", "tool_use", "accelerated_refresh", "worker"];
const COLUMNS = "trace_id, span_id, parent_span_id, task, input, start_time, execution_duration_ms, error_message";
const MOST = 100;

/** Return the tasks that are no part of another one of them. */
export function withoutParts<T extends { span_id: string; parent_span_id: string | null }>(tasks: T[]): T[] {
  const known = new Set(tasks.map((each) => each.span_id));
  return tasks.filter((each) => each.parent_span_id === null || !known.has(each.parent_span_id));
}

export function Finished() {
  const [order, setOrder] = useState("start_time");
  const [task, setTask] = useState("");
  const [text, setText] = useState("");
  const [isFailed, setFailed] = useState(false);
  const conditions = [
    // Clients that send a trace have parents that are not in the history.
    task ? `task = ${quoteText(task)}` : "task <> 'sql_fragment'",
    ...(text ? [`contains(lower(input), lower(${quoteText(text)}))`] : []),
    ...(isFailed ? ["error_message IS NOT NULL"] : []),
  ];
  const asked = useQuery({
    queryKey: ["finished", order, task, text, isFailed],
    queryFn: ({ signal }) =>
      selectRows<FinishedTask>(
        `SELECT ${COLUMNS} FROM runtime.task_history WHERE ${conditions.join(" AND ")} ORDER BY ${order} DESC LIMIT ${2 * MOST}`, signal,
      ),
    placeholderData: (last) => last,
  });
  return (
    <>
      <div className="toolbar">
        <label>Order{" "}
          <select value={order} onChange={(event) => setOrder(event.target.value)}>
            <option value="start_time">latest</option>
            <option value="execution_duration_ms">slowest</option>
          </select>
        </label>
        <label>Task{" "}
          <select value={task} onChange={(event) => setTask(event.target.value)}>
            <option value="">all</option>
            {TASKS.map((each) => <option key={each}>{each}</option>)}
          </select>
        </label>
        <label><span className="hidden">Text of the statement</span><input type="search" placeholder="Text of the statement" value={text} onChange={(event) => setText(event.target.value)} /></label>
        <label><input type="checkbox" checked={isFailed} onChange={(event) => setFailed(event.target.checked)} /> only failures</label>
        <button type="button" onClick={() => void asked.refetch()}>Look again</button>
      </div>
      <Answer of={asked} what="finished tasks">
        {(tasks) => tasks.length === 0 ? <Empty>No finished task fits.</Empty> : (
          <Table label="Finished tasks" head={["started", "task", "took", "input", "failure"]}>
            {withoutParts(tasks).slice(0, MOST).map((each) => (
              <tr key={each.span_id}>
                <td><a href={place("queries", "trace", each.trace_id)}><Time value={each.start_time} /></a></td>
                <td>{each.task}</td>
                <td className="number">{formatMs(each.execution_duration_ms)}</td>
                <td><a href={`${place("sql")}?${encodeLink(each.input)}`}><code>{each.input.slice(0, 200)}</code></a></td>
                <td>{each.error_message}</td>
              </tr>
            ))}
          </Table>
        )}
      </Answer>
    </>
  );
}

interface SlowStatement { input: string; runs: number; total_ms: number; median_ms: number; slowest_ms: number; failures: number }

const SLOWEST =
  "SELECT input, count(*) AS runs, sum(execution_duration_ms) AS total_ms, " +
  "approx_percentile_cont(execution_duration_ms, 0.5) AS median_ms, max(execution_duration_ms) AS slowest_ms, " +
  "count(error_message) AS failures FROM runtime.task_history WHERE task = 'sql_query' " +
  "GROUP BY input ORDER BY total_ms DESC LIMIT 20";

export function Slowest() {
  const asked = useQuery({ queryKey: ["slowest"], queryFn: ({ signal }) => selectRows<SlowStatement>(SLOWEST, signal), staleTime: 10_000 });
  return (
    <Answer of={asked} what="the slowest statements">
      {(all) => all.length === 0 ? <Empty>No statement has ended yet.</Empty> : (
        <Table label="Slowest statements" head={["statement", "runs", "in all", "median", "slowest", "failures"]}>
          {all.map((each) => (
            <tr key={each.input}>
              <td><a href={`${place("sql")}?${encodeLink(each.input)}`}><code>{each.input.slice(0, 200)}</code></a></td>
              <td className="number">{formatNumber(each.runs)}</td>
              <td className="number">{formatMs(each.total_ms)}</td>
              <td className="number">{formatMs(each.median_ms)}</td>
              <td className="number">{formatMs(each.slowest_ms)}</td>
              <td className="number">{formatNumber(each.failures)}</td>
            </tr>
          ))}
        </Table>
      )}
    </Answer>
  );
}
