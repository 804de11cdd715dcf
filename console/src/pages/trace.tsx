/** The tasks of a trace: a tree of spans, each on the line of time. */

import { useQuery } from "@tanstack/react-query";
import { selectRows } from "../api/client";
import { quoteText } from "../api/queries";
import { Answer, Empty, Failure } from "../parts/basics";
import { formatMs, formatNumber } from "../parts/format";

export interface Span {
  span_id: string;
  parent_span_id: string | null;
  task: string;
  input: string;
  start_time: string;
  execution_duration_ms: number;
  error_message: string | null;
  node_id: string;
  rows_produced: string | null;
}

export interface PlacedSpan {
  span: Span;
  /** Where it is on the line of the whole trace, in percent. */
  left: number;
  width: number;
  children: PlacedSpan[];
}

const MOST = 2_000;

/** Return the spans below the ones that they are part of, on one line of time. */
export function placeSpans(spans: Span[]): PlacedSpan[] {
  const starts = new Map(spans.map((each) => [each.span_id, Date.parse(each.start_time)]));
  const begin = Math.min(...starts.values());
  const end = Math.max(...spans.map((each) => (starts.get(each.span_id) ?? 0) + each.execution_duration_ms));
  const length = Math.max(1, end - begin);
  const placed = new Map(
    spans.map((span): [string, PlacedSpan] => [
      span.span_id,
      {
        span,
        left: (((starts.get(span.span_id) ?? begin) - begin) / length) * 100,
        width: Math.max(0.5, (span.execution_duration_ms / length) * 100),
        children: [],
      },
    ]),
  );
  const roots: PlacedSpan[] = [];
  for (const each of placed.values()) {
    const parent = each.span.parent_span_id === null ? undefined : placed.get(each.span.parent_span_id);
    (parent?.children ?? roots).push(each);
  }
  return roots;
}

export function Trace({ id }: { id: string }) {
  const asked = useQuery({
    queryKey: ["trace", id],
    queryFn: ({ signal }) =>
      selectRows<Span>(
        "SELECT span_id, parent_span_id, task, input, start_time, execution_duration_ms, error_message, node_id, " +
          "map_extract(labels, 'rows_produced')[1] AS rows_produced " +
          `FROM runtime.task_history WHERE trace_id = ${quoteText(id)} ORDER BY start_time LIMIT ${MOST}`, signal,
      ),
    // A task is in the history a moment after its answer.
    refetchInterval: (query) => (query.state.data?.length === 0 && query.state.dataUpdateCount < 5 ? 1_000 : false),
  });
  return (
    <article>
      <h2>Trace {id}</h2>
      <Answer of={asked} what="the trace">
        {(spans) => spans.length === 0 ? <Empty>The history has no task of this trace.</Empty> : (
          <ul className="spans">{placeSpans(spans).map((each) => <SpanView key={each.span.span_id} placed={each} />)}</ul>
        )}
      </Answer>
    </article>
  );
}

function SpanView({ placed: { span, left, width, children } }: { placed: PlacedSpan }) {
  return (
    <li>
      <div className="span">
        <span>{span.task} <span className="quiet">{formatMs(span.execution_duration_ms)}</span></span>
        <span className="span-line" aria-hidden="true">
          <span style={{ left: `${left}%`, width: `${width}%` }} />
        </span>
      </div>
      <code>{span.input.slice(0, 300)}</code>
      {span.task === "sql_fragment" && <div className="quiet">on {span.node_id}{span.rows_produced !== null && `, ${formatNumber(Number(span.rows_produced))} rows`}</div>}
      {span.error_message && <Failure error={new Error(span.error_message)} />}
      {children.length > 0 && <ul>{children.map((each) => <SpanView key={each.span.span_id} placed={each} />)}</ul>}
    </li>
  );
}
