import { useQuery } from "@tanstack/react-query";
import { fetchJson, selectRows } from "../api/client";
import { EVERY_MS, useDatasets, useExecutors, useReadiness } from "../api/queries";
import { farthestBehind, LagView } from "../data/lag";
import { Answer, Empty, Page, State } from "../parts/basics";
import { formatBytes, formatMs, formatNumber } from "../parts/format";
import { datasetPlace, place } from "../parts/route";

interface Pod { name: string; version: string; datasets_count: number; models_count: number }
interface LastHour { statements: number; failures: number; median_ms: number | null }

export default function HomePage() {
  const readiness = useReadiness();
  const datasets = useDatasets();
  const executors = useExecutors();
  const pods = useQuery({ queryKey: ["pods"], queryFn: ({ signal }) => fetchJson<Pod[]>("v1/pods", { signal }) });
  const hour = useQuery({
    queryKey: ["hour"],
    queryFn: async ({ signal }) =>
      (
        await selectRows<LastHour>(
          "SELECT count(*) AS statements, count(error_message) AS failures, " +
            "approx_percentile_cont(execution_duration_ms, 0.5) AS median_ms FROM runtime.task_history " +
            "WHERE task = 'sql_query' AND start_time > now() - INTERVAL '1 hour'", signal,
        )
      )[0] as LastHour,
    refetchInterval: EVERY_MS * 6,
  });
  const farthest = farthestBehind(datasets.data ?? []);
  return (
    <Page title="Home">
      <Answer of={readiness} what="readiness">
        {(found) => (
          <p className={`well ${found.isReady ? "good" : "bad"}`} role="status">
            {found.isReady ? "The runtime is ready." : "The runtime is not ready."}{" "}
            {pods.data?.[0] && <span className="quiet">Manifest {pods.data.map((each) => each.name).join(", ")}</span>}
          </p>
        )}
      </Answer>
      <div className="cards">
        <a className="card" href={place("data")}><strong>{datasets.data ? formatNumber(datasets.data.length) : "…"}</strong> datasets</a>
        <a className="card" href={place("cluster")}><strong>{executors.data ? `${executors.data.filter((each) => each.state === "ready").length} of ${executors.data.length}` : "…"}</strong> executors ready</a>
        <a className="card" href={place("queries")}><strong>{hour.data ? formatNumber(hour.data.statements) : "…"}</strong> statements in the last hour{hour.data && hour.data.failures > 0 ? `, ${formatNumber(hour.data.failures)} failed` : ""}</a>
        <div className="card"><strong>{hour.data?.median_ms != null ? formatMs(hour.data.median_ms) : "–"}</strong> median time</div>
      </div>
      {farthest && <p>Oldest rows: <a href={datasetPlace(farthest.name)}>{farthest.name}</a>, <LagView lag={farthest.lag} /></p>}
      <h2>What needs attention</h2>
      <Answer of={datasets} what="datasets">
        {(all) => {
          const failing = all.filter((each) => each.status === "error" || each.status === "disabled");
          const late = all.filter((each) => each.lag?.is_late);
          const away = (executors.data ?? []).filter((each) => each.state !== "ready");
          const full = (executors.data ?? []).filter((each) => each.memory_used_bytes > 0.9 * each.memory_bytes);
          if (failing.length + late.length + away.length + full.length === 0) return <p>Nothing: all datasets are loaded and in time, and all executors are ready.</p>;
          return (
            <ul className="attention">
              {failing.map((each) => (
                <li key={each.name}><a href={datasetPlace(each.name)}>{each.name}</a> <State value={each.status ?? "error"} /> {each.error_message} {each.error && <code>{each.error.code}</code>}</li>
              ))}
              {late.map((each) => each.lag && <li key={`late ${each.name}`}><a href={datasetPlace(each.name)}>{each.name}</a> <LagView lag={each.lag} /></li>)}
              {away.map((each) => <li key={each.executor_id}>Executor <code>{each.executor_id}</code> <State value={each.state} /> {each.reason}</li>)}
              {full.map((each) => <li key={`full ${each.executor_id}`}>Executor <code>{each.executor_id}</code> uses {formatBytes(each.memory_used_bytes)} of {formatBytes(each.memory_bytes)}</li>)}
            </ul>
          );
        }}
      </Answer>
      {datasets.data?.length === 0 && (
        <Empty>
          <h2>First steps</h2>
          <ol>
            <li>Add a dataset to the manifest: <code>{"datasets: [{from: 'file:data/orders.parquet', name: orders}]"}</code></li>
            <li>The runtime reads it without a restart; it appears under <a href={place("data")}>Data</a>.</li>
            <li>Ask for its rows in <a href={place("sql")}>SQL</a>.</li>
          </ol>
        </Empty>
      )}
    </Page>
  );
}
