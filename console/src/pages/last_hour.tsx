/** Charts of the last hour of the scheduler that served the page, and how its engine processes ended. */

import { useQuery } from "@tanstack/react-query";
import { fetchJson } from "../api/client";
import type { LastHour } from "../api/types";
import { Answer, Empty, Table } from "../parts/basics";
import { formatBytes, formatMs, formatNumber } from "../parts/format";
import { LineChart, type Line } from "../parts/line_chart";

export function useLastHour() {
  return useQuery({
    queryKey: ["last hour"],
    queryFn: ({ signal }) => fetchJson<LastHour>("v1/cluster/recent", { signal }),
    refetchInterval: (query) => (query.state.data?.every_s ?? 15) * 1_000,
  });
}

/** Return the lines of samples: counts as rates, and times as means. */
export function linesOf(found: LastHour): Line[] {
  const at = column(found, "at_ms").map((each) => each ?? 0);
  const every = found.every_s;
  const rate = (name: string) => column(found, name).map((each) => (each === null ? null : each / every));
  const statements = column(found, "statements");
  const means = column(found, "busy_ms").map((busy, number) => {
    const count = statements[number];
    return busy === null || !count ? null : busy / count;
  });
  const memory = column(found, "memory_bytes");
  const perSecond = (value: number): string => `${formatNumber(Math.round(value * 10) / 10)}/s`;
  return [
    { title: "Statements", at, values: rate("statements"), format: perSecond },
    { title: "Failed statements", at, values: column(found, "failures"), format: formatNumber },
    { title: "Time of a statement", at, values: means, format: formatMs },
    { title: "Running", at, values: column(found, "running"), format: formatNumber },
    { title: "Waiting for a slot", at, values: column(found, "queued"), format: formatNumber },
    { title: "Rows sent", at, values: rate("rows"), format: perSecond },
    { title: "Memory of executors", at, values: column(found, "memory_used_bytes"), format: formatBytes, most: memory[memory.length - 1] ?? undefined },
    { title: "Executors ready", at, values: column(found, "executors_ready"), format: formatNumber },
  ];
}

function column(found: LastHour, name: string): (number | null)[] {
  return found.columns[name] ?? [];
}

export function LastHourCharts() {
  const asked = useLastHour();
  return (
    <Answer of={asked} what="the last hour">
      {(found) => (found.columns.at_ms ?? []).length < 2 ? (
        <Empty>The first charts come {Math.round(found.every_s * 3)} seconds after the start.</Empty>
      ) : (
        <div className="line-charts">{linesOf(found).map((each) => <LineChart key={each.title} {...each} />)}</div>
      )}
    </Answer>
  );
}

/** How often engine processes ended and statements were refused for it, by cause. */
export function EngineEnds() {
  const asked = useLastHour();
  return (
    <Answer of={asked} what="restarts">
      {({ engine_ends: ends, engine_refusals: refusals, schedulers }) => {
        const causes = [...new Set([...Object.keys(ends), ...Object.keys(refusals)])].sort();
        if (causes.length === 0) return <p className="quiet">No engine process of this scheduler{schedulers > 1 && `, one of ${schedulers},`} has ended since its start.</p>;
        return (
          <Table label="Restarts of engine processes" head={["cause", "ended", "refused statements"]}>
            {causes.map((each) => (
              <tr key={each}><td>{each}</td><td className="number">{formatNumber(ends[each] ?? 0)}</td><td className="number">{formatNumber(refusals[each] ?? 0)}</td></tr>
            ))}
          </Table>
        );
      }}
    </Answer>
  );
}
