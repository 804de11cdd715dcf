import type { Field } from "apache-arrow";
import { useMemo } from "react";
import { formatNumber } from "../parts/format";
import type { Result } from "./results";
import { summarize } from "./summary";
import { typeName } from "./values";

export function SummaryView({ result, column, close }: { result: Result; column: number; close: () => void }) {
  const field = result.schema.fields[column] as Field;
  const found = useMemo(() => summarize(result, column), [result, column]);
  const highest = Math.max(1, ...found.bins);
  return (
    <aside className="summary" aria-label={`Summary of ${field.name}`}>
      <header>
        <strong>{field.name}</strong> <span className="quiet">{typeName(field)}</span>
        <button type="button" onClick={close}>Close</button>
      </header>
      <dl>
        <dt>rows</dt>
        <dd>{formatNumber(found.rows)}</dd>
        <dt>nulls</dt>
        <dd>{formatNumber(found.nulls)}</dd>
        <dt>distinct</dt>
        <dd>{found.distinct === null ? "over 100,000" : formatNumber(found.distinct)}</dd>
        <dt>least</dt>
        <dd>{found.least}</dd>
        <dt>most</dt>
        <dd>{found.most}</dd>
      </dl>
      {found.bins.length > 0 && (
        <svg viewBox={`0 0 ${found.bins.length * 10} 60`} role="img" aria-label={`Histogram of ${field.name}`}>
          {found.bins.map((count, at) => (
            <rect key={at} x={at * 10} width={9} y={60 - (count / highest) * 58} height={(count / highest) * 58}>
              <title>{formatNumber(count)}</title>
            </rect>
          ))}
        </svg>
      )}
      {found.frequent.length > 0 && (
        <ol>
          {found.frequent.map((each) => (
            <li key={each.text}>
              <span dir="auto">{each.text || "(empty)"}</span> <span className="quiet">{formatNumber(each.count)}</span>
            </li>
          ))}
        </ol>
      )}
    </aside>
  );
}
