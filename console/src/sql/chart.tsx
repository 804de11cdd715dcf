/** A chart of a result: its first number or time below, its numbers above. */

import type { Field } from "apache-arrow";
import { useEffect, useMemo, useRef, useState } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { Result } from "./results";
import { isNumeric, isTemporal, numberOf, shownText } from "./values";

const MOST_POINTS = 20_000;
const MOST_SERIES = 6;

export default function Chart({ result }: { result: Result }) {
  const host = useRef<HTMLDivElement>(null);
  const fields = result.schema.fields;
  const numeric = fields.flatMap((field, at) => (isNumeric(field) ? [at] : []));
  const timed = fields.findIndex(isTemporal);
  const [across, setAcross] = useState(timed >= 0 ? timed : numeric.length === fields.length ? 0 : fields.findIndex((field) => !isNumeric(field)));
  const [kind, setKind] = useState<"lines" | "bars">(timed >= 0 ? "lines" : "bars");
  const series = numeric.filter((at) => at !== across).slice(0, MOST_SERIES);

  const data = useMemo(() => read(result, across, series), [result, across, series.join()]);
  useEffect(() => {
    const element = host.current as HTMLDivElement;
    if (series.length === 0) return;
    const style = getComputedStyle(document.documentElement);
    const color = (name: string): string => style.getPropertyValue(name).trim();
    const axis = { stroke: color("--text"), grid: { stroke: color("--line") }, ticks: { stroke: color("--line") } };
    const isTime = isTemporal(fields[across] as Field);
    const plot = new uPlot(
      {
        width: element.clientWidth, height: 320,
        scales: { x: { time: isTime } },
        axes: [
          data.labels === null ? axis : { ...axis, values: (_, at) => at.map((each) => data.labels?.[each] ?? "") },
          axis,
        ],
        series: [
          { label: (fields[across] as Field).name },
          ...series.map((at, number) => ({
            label: (fields[at] as Field).name,
            stroke: color(`--series-${number + 1}`),
            ...(kind === "bars" ? { paths: uPlot.paths.bars?.({ size: [0.7, 60] }), fill: color(`--series-${number + 1}`) } : {}),
          })),
        ],
      },
      data.columns,
      element,
    );
    const observer = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height: 320 }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      plot.destroy();
    };
  }, [data, kind]);

  if (series.length === 0) return <p className="quiet">A chart needs a column with numbers.</p>;
  return (
    <div className="chart">
      <div className="grid-tools">
        <label>
          Across{" "}
          <select value={across} onChange={(event) => setAcross(Number(event.target.value))}>
            {fields.map((field, at) => (
              <option key={at} value={at}>{field.name}</option>
            ))}
          </select>
        </label>
        <label>
          As{" "}
          <select value={kind} onChange={(event) => setKind(event.target.value as "lines" | "bars")}>
            <option value="lines">lines</option>
            <option value="bars">bars</option>
          </select>
        </label>
        {result.rows > MOST_POINTS && <span className="quiet">the first {MOST_POINTS.toLocaleString("en-US")} rows</span>}
      </div>
      <div ref={host} role="img" aria-label={`Chart of ${series.map((at) => (fields[at] as Field).name).join(", ")} by ${(fields[across] as Field).name}`} />
    </div>
  );
}

function read(result: Result, across: number, series: number[]): { columns: uPlot.AlignedData; labels: string[] | null } {
  const field = result.schema.fields[across] as Field;
  const isOrdered = isNumeric(field) || isTemporal(field);
  const rows = Math.min(result.rows, MOST_POINTS);
  const labels: string[] = [];
  const points: { x: number; ys: (number | null)[] }[] = [];
  for (const batch of result.batches) {
    const below = batch.getChildAt(across);
    const above = series.map((at) => batch.getChildAt(at));
    for (let at = 0; at < batch.numRows && points.length < rows; at += 1) {
      const value: unknown = below?.get(at);
      if (!isOrdered) labels.push(shownText(value, field));
      const x = isOrdered ? numberOf(value, field) : points.length;
      if (x === null) continue;
      points.push({
        x: isTemporal(field) ? x / 1_000 : x,
        ys: above.map((vector, number) => numberOf(vector?.get(at), result.schema.fields[series[number] as number] as Field)),
      });
    }
  }
  if (isOrdered) points.sort((a, b) => a.x - b.x);
  const columns = [points.map((point) => point.x), ...series.map((_, number) => points.map((point) => point.ys[number] ?? null))];
  return { columns: columns as uPlot.AlignedData, labels: isOrdered ? null : labels };
}
