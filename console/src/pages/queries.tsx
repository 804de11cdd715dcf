import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { fetchJson, selectRows, send } from "../api/client";
import { useMayWrite } from "../api/key";
import { EVERY_MS, quoteText } from "../api/queries";
import type { ActiveStatements, FinishedTask, Jobs as JobList } from "../api/types";
import { Answer, Empty, Failure, Page, State, Table, Time } from "../parts/basics";
import { formatMs, formatNumber } from "../parts/format";
import { encodeLink } from "../parts/links";
import { place, useRoute } from "../parts/route";

export default function QueriesPage() {
  const { parts } = useRoute();
  const [, kind, id] = parts;
  const mayWrite = useMayWrite();
  return (
    <Page title="Queries and jobs">
      {kind === "trace" && id ? <Trace id={id} /> : kind ? <Job id={kind} /> : (
        <>
          {mayWrite && <><h2>Running</h2><Running /></>}
          <h2>Jobs</h2>
          <Jobs />
          <h2>Finished</h2>
          <Finished />
        </>
      )}
    </Page>
  );
}

function useCancel(key: string) {
  const client = useQueryClient();
  const [failure, setFailure] = useState<unknown>(null);
  const cancel = async (path: string): Promise<void> => {
    setFailure(null);
    try {
      await send(path, { method: "POST" });
    } catch (error) {
      setFailure(error);
    }
    await client.invalidateQueries({ queryKey: [key] });
  };
  return { cancel, failure };
}

function Running() {
  const asked = useQuery({
    queryKey: ["active"],
    queryFn: ({ signal }) => fetchJson<ActiveStatements>("v1/sql/active", { signal }),
    refetchInterval: 2_000,
  });
  const { cancel, failure } = useCancel("active");
  return (
    <>
      {failure !== null && <Failure error={failure} />}
      <Answer of={asked} what="running statements">
        {({ queries }) => queries.length === 0 ? <Empty>No statement of yours is running.</Empty> : (
          <Table label="Running statements" head={["statement", "by", "for", ""]}>
            {queries.map((each) => (
              <tr key={each.query_id}>
                <td><code>{each.sql_preview}</code></td>
                <td>{each.protocol}</td>
                <td>{formatMs(Math.max(0, Date.now() - each.started_at_ms))}</td>
                <td><button type="button" onClick={() => void cancel(`v1/sql/${each.query_id}/cancel`)}>Cancel</button></td>
              </tr>
            ))}
          </Table>
        )}
      </Answer>
    </>
  );
}

const STATES = ["", "PENDING", "RUNNING", "SUCCEEDED", "FAILED", "CANCELLED"];

function Jobs() {
  const [status, setStatus] = useState("");
  const asked = useQuery({
    queryKey: ["jobs", status],
    queryFn: ({ signal }) =>
      fetchJson<JobList>(`v1/queries?limit=50${status && `&status=${status.toLowerCase()}`}`, { signal }),
    refetchInterval: EVERY_MS,
  });
  const { cancel, failure } = useCancel("jobs");
  const mayWrite = useMayWrite();
  return (
    <>
      <label>State{" "}
        <select value={status} onChange={(event) => setStatus(event.target.value)}>
          {STATES.map((each) => <option key={each} value={each}>{each === "" ? "all" : each.toLowerCase()}</option>)}
        </select>
      </label>
      {failure !== null && <Failure error={failure} />}
      <Answer of={asked} what="jobs">
        {(found) => found.queries.length === 0 ? <Empty>No jobs. The switch “as a job” of the SQL page submits one, and so does <code>POST /v1/queries</code>.</Empty> : (
          <>
            <Table label="Jobs" head={["query", "state", "submitted", "statement", ""]}>
              {found.queries.map((each) => (
                <tr key={each.query_id}>
                  <td><a href={place("queries", each.query_id)}>{each.query_id}</a></td>
                  <td><State value={each.status} /></td>
                  <td><Time value={each.created_at} /></td>
                  <td><code>{each.sql_preview}</code></td>
                  <td>{mayWrite && (each.status === "PENDING" || each.status === "RUNNING") && <button type="button" onClick={() => void cancel(`v1/queries/${each.query_id}/cancel`)}>Cancel</button>}</td>
                </tr>
              ))}
            </Table>
            <p className="quiet">{formatNumber(found.total_count)} in all</p>
          </>
        )}
      </Answer>
    </>
  );
}

interface JobRecord {
  query_id: string;
  status: string;
  created_at: string;
  started_at?: string | null;
  completed_at?: string | null;
  expires_at?: string | null;
  error?: { message?: string } | string | null;
  sql?: string;
  manifest?: { total_row_count: number; schema: { columns: { name: string; type_name: string }[] } } | null;
  result?: { data_array: Record<string, unknown>[] } | null;
}

function Job({ id }: { id: string }) {
  const asked = useQuery({
    queryKey: ["job", id],
    queryFn: ({ signal }) => fetchJson<JobRecord>(`v1/queries/${encodeURIComponent(id)}`, { signal }),
    refetchInterval: (query) => (query.state.data && !["PENDING", "RUNNING"].includes(query.state.data.status) ? false : 1_000),
  });
  return (
    <Answer of={asked} what="the query">
      {(job) => {
        const columns = job.manifest?.schema.columns ?? [];
        const reason = typeof job.error === "string" ? job.error : job.error?.message;
        return (
          <article>
            <h2>{job.query_id}</h2>
            <dl className="facts">
              <dt>state</dt><dd><State value={job.status} /></dd>
              <dt>submitted</dt><dd><Time value={job.created_at} /></dd>
              {job.started_at && <><dt>started</dt><dd><Time value={job.started_at} /></dd></>}
              {job.completed_at && <><dt>completed</dt><dd><Time value={job.completed_at} /></dd></>}
              {job.expires_at && <><dt>kept until</dt><dd><Time value={job.expires_at} /></dd></>}
              {job.manifest && <><dt>rows</dt><dd>{formatNumber(job.manifest.total_row_count)}</dd></>}
            </dl>
            {job.sql && <p><code>{job.sql}</code></p>}
            {reason && <Failure error={new Error(reason)} />}
            {job.result && columns.length > 0 && (
              <Table label="First rows" head={columns.map((each) => each.name)}>
                {job.result.data_array.slice(0, 100).map((row, at) => (
                  <tr key={at}>{columns.map((each) => <td key={each.name} dir="auto">{cellText(row[each.name])}</td>)}</tr>
                ))}
              </Table>
            )}
          </article>
        );
      }}
    </Answer>
  );
}

function cellText(value: unknown): string {
  if (value === null || value === undefined) return "null";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

const COLUMNS = "trace_id, task, input, start_time, execution_duration_ms, error_message";

function Finished() {
  const [order, setOrder] = useState("start_time");
  const [text, setText] = useState("");
  const [isFailed, setFailed] = useState(false);
  const conditions = ["parent_span_id IS NULL", ...(text ? [`contains(lower(input), lower(${quoteText(text)}))`] : []), ...(isFailed ? ["error_message IS NOT NULL"] : [])];
  const asked = useQuery({
    queryKey: ["finished", order, text, isFailed],
    queryFn: ({ signal }) =>
      selectRows<FinishedTask>(
        `SELECT ${COLUMNS} FROM runtime.task_history WHERE ${conditions.join(" AND ")} ORDER BY ${order} DESC LIMIT 100`, signal,
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
        <label><span className="hidden">Text of the statement</span><input type="search" placeholder="Text of the statement" value={text} onChange={(event) => setText(event.target.value)} /></label>
        <label><input type="checkbox" checked={isFailed} onChange={(event) => setFailed(event.target.checked)} /> only failures</label>
        <button type="button" onClick={() => void asked.refetch()}>Look again</button>
      </div>
      <Answer of={asked} what="finished tasks">
        {(tasks) => tasks.length === 0 ? <Empty>No finished task fits.</Empty> : (
          <Table label="Finished tasks" head={["started", "task", "took", "input", "failure"]}>
            {tasks.map((each) => (
              <tr key={`${each.trace_id} ${each.start_time}`}>
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

interface Span {
  span_id: string;
  parent_span_id: string | null;
  task: string;
  input: string;
  start_time: string;
  execution_duration_ms: number;
  error_message: string | null;
}

function Trace({ id }: { id: string }) {
  const asked = useQuery({
    queryKey: ["trace", id],
    queryFn: ({ signal }) =>
      selectRows<Span>(
        "SELECT span_id, parent_span_id, task, input, start_time, execution_duration_ms, error_message " +
          `FROM runtime.task_history WHERE trace_id = ${quoteText(id)} ORDER BY start_time`, signal,
      ),
  });
  return (
    <article>
      <h2>Trace {id}</h2>
      <Answer of={asked} what="the trace">
        {(spans) => spans.length === 0 ? <Empty>The history has no task of this trace any more.</Empty> : <Spans spans={spans} />}
      </Answer>
    </article>
  );
}

function Spans({ spans }: { spans: Span[] }) {
  const known = new Set(spans.map((each) => each.span_id));
  const begin = Math.min(...spans.map((each) => Date.parse(each.start_time)));
  const end = Math.max(...spans.map((each) => Date.parse(each.start_time) + each.execution_duration_ms));
  const length = Math.max(1, end - begin);
  const below = (parent: string | null): Span[] =>
    spans.filter((each) => (parent === null ? each.parent_span_id === null || !known.has(each.parent_span_id) : each.parent_span_id === parent));
  const show = (span: Span) => (
    <li key={span.span_id}>
      <div className="span">
        <span>{span.task} <span className="quiet">{formatMs(span.execution_duration_ms)}</span></span>
        <span className="span-line" aria-hidden="true">
          <span style={{ left: `${((Date.parse(span.start_time) - begin) / length) * 100}%`, width: `${Math.max(0.5, (span.execution_duration_ms / length) * 100)}%` }} />
        </span>
      </div>
      <code>{span.input.slice(0, 300)}</code>
      {span.error_message && <Failure error={new Error(span.error_message)} />}
      {below(span.span_id).length > 0 && <ul>{below(span.span_id).map(show)}</ul>}
    </li>
  );
  return <ul className="spans">{below(null).map(show)}</ul>;
}
