import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Fragment, lazy, Suspense, useState } from "react";
import { fetchJson, send } from "../api/client";
import { useMayWrite } from "../api/key";
import { EVERY_MS } from "../api/queries";
import type { ActiveStatements, Jobs as JobList } from "../api/types";
import { Answer, Empty, Failure, Page, State, Table, Time } from "../parts/basics";
import { formatMs, formatNumber } from "../parts/format";
import { place, useRoute } from "../parts/route";
import { Finished, Slowest } from "./finished";
import { Trace } from "./trace";

const LiveStages = lazy(() => import("../sql/live_stages"));

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
          <h2>Slowest statements</h2>
          <Slowest />
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
  const [opened, setOpened] = useState<string | null>(null);
  return (
    <>
      {failure !== null && <Failure error={failure} />}
      <Answer of={asked} what="running statements">
        {({ queries }) => queries.length === 0 ? <Empty>No statement of yours is running.</Empty> : (
          <Table label="Running statements" head={["statement", "by", "for", ""]}>
            {queries.map((each) => (
              <Fragment key={each.query_id}>
                <tr>
                  <td><code>{each.sql_preview}</code></td>
                  <td>{each.protocol}</td>
                  <td>{formatMs(Math.max(0, Date.now() - each.started_at_ms))}</td>
                  <td>
                    <button type="button" aria-expanded={opened === each.query_id} onClick={() => setOpened(opened === each.query_id ? null : each.query_id)}>Stages</button>{" "}
                    <button type="button" onClick={() => void cancel(`v1/sql/${each.query_id}/cancel`)}>Cancel</button>
                  </td>
                </tr>
                {opened === each.query_id && <tr><td colSpan={4}><Suspense><LiveStages id={each.query_id} isAsked /></Suspense></td></tr>}
              </Fragment>
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
            {job.status === "RUNNING" && <Suspense><LiveStages id={job.query_id} isAsked /></Suspense>}
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
