import { useQuery } from "@tanstack/react-query";
import { fetchJson, selectRows } from "../api/client";
import { EVERY_MS, useExecutors, useReadiness } from "../api/queries";
import { Answer, Page, State, Table, Time } from "../parts/basics";
import { formatBytes, formatNumber } from "../parts/format";
import { EngineEnds, LastHourCharts } from "./last_hour";

interface Listener { name: string; endpoint: string; status: string }
interface Engine { engine: string; pid: number; started_at: string; memory_bytes: number; limit_bytes: number; statements: number }

export default function ClusterPage() {
  const executors = useExecutors();
  const readiness = useReadiness();
  const listeners = useQuery({ queryKey: ["status"], queryFn: ({ signal }) => fetchJson<Listener[]>("v1/status", { signal }) });
  const engines = useQuery({
    queryKey: ["engines"],
    queryFn: ({ signal }) => selectRows<Engine>("SELECT * FROM runtime.engines ORDER BY engine", signal),
    refetchInterval: EVERY_MS,
  });
  return (
    <Page title="Cluster">
      <h2>Executors</h2>
      <Answer of={executors} what="executors">
        {(all) => (
          <Table label="Executors" head={["executor", "state", "address", "cores", "memory", "tasks", "failed", "tables", "last heard of"]}>
            {all.map((each) => (
              <tr key={each.executor_id}>
                <td><code>{each.executor_id}</code></td>
                <td><State value={each.state} />{each.reason && <div className="quiet">{each.reason}</div>}</td>
                <td>{each.address}</td>
                <td className="number">{each.cores}</td>
                <td>
                  <meter min={0} max={each.memory_bytes} value={each.memory_used_bytes} aria-label="Memory in use" />{" "}
                  {formatBytes(each.memory_used_bytes)} of {formatBytes(each.memory_bytes)}
                </td>
                <td className="number">{each.active_tasks} of {formatNumber(each.active_tasks + each.finished_tasks)}</td>
                <td className="number">{formatNumber(each.failed_tasks)}</td>
                <td>{each.holds.length}</td>
                <td>{(each.heartbeat_age_ms / 1_000).toFixed(1)} s ago</td>
              </tr>
            ))}
          </Table>
        )}
      </Answer>
      <h2>Last hour</h2>
      <LastHourCharts />
      <h2>Readiness</h2>
      <Answer of={readiness} what="readiness">
        {(found) => <><State value={found.isReady ? "ready" : "error"} /><pre>{found.text}</pre></>}
      </Answer>
      <h2>Engine processes</h2>
      <Answer of={engines} what="engine processes">
        {(all) => (
          <Table label="Engine processes" head={["engine", "process", "started", "memory", "statements"]}>
            {all.map((each) => (
              <tr key={`${each.engine} ${each.pid}`}>
                <td>{each.engine}</td><td className="number">{each.pid}</td><td><Time value={each.started_at} /></td>
                <td>{formatBytes(each.memory_bytes)} of {formatBytes(each.limit_bytes)}</td><td className="number">{formatNumber(each.statements)}</td>
              </tr>
            ))}
          </Table>
        )}
      </Answer>
      <EngineEnds />
      <h2>Listeners</h2>
      <Answer of={listeners} what="listeners">
        {(all) => (
          <Table label="Listeners" head={["listener", "address", "state"]}>
            {all.map((each) => <tr key={each.name}><td>{each.name}</td><td><code>{each.endpoint}</code></td><td><State value={each.status} /></td></tr>)}
          </Table>
        )}
      </Answer>
    </Page>
  );
}
