import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useEffect, useMemo, useRef, useState } from "react";
import { selectRows } from "../api/client";
import type { Column } from "../api/types";
import { Failure, Page, State, Time, Waiting } from "../parts/basics";
import { formatMs, formatNumber } from "../parts/format";
import { decodeLink, encodeLink } from "../parts/links";
import { go, place, useRoute } from "../parts/route";
import type { Mark } from "./editor";
import { exportRows, FORMATS, type Format } from "./exporting";
import { Grid } from "./grid";
import LiveStages from "./live_stages";
import { PlanView } from "./plan_view";
import { useRuns, type Mode, type Run } from "./running";
import { placeIn } from "./statements";
import { chooseTab, clearHistory, closeTab, openTab, renameTab, useHistory, useTabs, writeTab } from "./tabs";

const Editor = lazy(() => import("./editor"));
const Chart = lazy(() => import("./chart"));
const MOST_COMPLETED = 20_000;

export default function SqlPage() {
  const { tabs, active } = useTabs();
  const tab = tabs.find((each) => each.id === active) ?? tabs[0];
  const { runs, begin, cancel } = useRuns();
  const [isJob, setJob] = useState(false);
  const [parameters, setParameters] = useState("");
  const [showsHistory, setHistory] = useState(false);
  const runSelected = useRef<() => void>(() => undefined);
  const mode = useRef<Mode>("now");
  const schema = useSchema();
  const { search } = useRoute();

  useEffect(() => {
    const linked = decodeLink(search);
    if (linked === null) return;
    openTab(linked);
    go(place("sql"), true);
  }, [search]);

  if (tab === undefined) return null;
  const run = runs[tab.id];
  const failure = run?.state === "failed" ? run : null;
  const mark: Mark | null = failure?.error ? placeIn(failure.error, failure.sql, failure.begin) : null;

  const start = (sql: string, at: number): void => {
    const chosen = mode.current === "now" && isJob ? "job" : mode.current;
    mode.current = "now";
    if (sql.trim() === "") return;
    void begin(tab.id, sql, at, chosen, parsed(parameters));
  };
  const runAs = (chosen: Mode): void => {
    mode.current = chosen;
    runSelected.current();
  };

  return (
    <Page title="SQL">
      <div className="tabs" role="group" aria-label="Statements">
        {tabs.map((each) => (
          <span key={each.id} className={each.id === tab.id ? "tab chosen" : "tab"}>
            <button type="button" aria-pressed={each.id === tab.id} onClick={() => chooseTab(each.id)}
              onDoubleClick={() => { const title = prompt("Name of the tab", each.title); if (title) renameTab(each.id, title); }}>
              {each.title}
              {runs[each.id]?.state === "running" && <span className="dot" aria-label="running" />}
            </button>
            <button type="button" aria-label={`Close ${each.title}`} onClick={() => { cancel(each.id); closeTab(each.id); }}>×</button>
          </span>
        ))}
        <button type="button" onClick={() => openTab()} aria-label="New tab">+</button>
      </div>
      <div className="editor-box">
        <Suspense fallback={<Waiting what="the editor" />}>
          <Editor key={tab.id} text={tab.text} schema={schema} mark={mark} onChange={(text) => writeTab(tab.id, text)} onRun={start}
            onReady={(ready) => { runSelected.current = ready; }} />
        </Suspense>
      </div>
      <div className="toolbar">
        {run?.state === "running" ? (
          <button type="button" className="main-button" onClick={() => cancel(tab.id)}>Cancel</button>
        ) : (
          <button type="button" className="main-button" onClick={() => runAs("now")} title="Ctrl+Enter">Run</button>
        )}
        <button type="button" onClick={() => runAs("explain")}>Explain</button>
        <button type="button" onClick={() => runAs("analyze")}>Analyze</button>
        <label><input type="checkbox" checked={isJob} onChange={(event) => setJob(event.target.checked)} /> as a job</label>
        <label>
          <span className="hidden">Parameters</span>
          <input placeholder="Parameters: [1, &quot;a&quot;]" value={parameters} onChange={(event) => setParameters(event.target.value)}
            aria-invalid={parameters !== "" && parsed(parameters) === undefined} />
        </label>
        <button type="button" onClick={() => void navigator.clipboard?.writeText(`${location.href.split("#")[0]}#/sql?${encodeLink(tab.text)}`)}>Copy link</button>
        <button type="button" aria-expanded={showsHistory} onClick={() => setHistory(!showsHistory)}>History</button>
      </div>
      {showsHistory && <HistoryList close={() => setHistory(false)} />}
      {run !== undefined && <Outcome run={run} />}
    </Page>
  );
}

function Outcome({ run }: { run: Run }) {
  const [shown, setShown] = useState<"rows" | "chart">("rows");
  const [exporting, setExporting] = useState<string | null>(null);
  const [failure, setFailure] = useState<unknown>(null);
  const { result } = run;
  const download = async (format: Format): Promise<void> => {
    setExporting(format.name);
    setFailure(null);
    try {
      await exportRows(run.sql, format, AbortSignal.timeout(600_000));
    } catch (error) {
      setFailure(error);
    }
    setExporting(null);
  };
  return (
    <section className="outcome" aria-label="Result">
      <p className="outcome-line" role="status">
        <State value={run.state} /> {formatMs(run.ms)}
        {result && ` · ${formatNumber(result.rows)} rows`}
        {result?.isCut && ` · more rows exist; export has all of them`}
        {run.state !== "running" && <> · <a href={place("queries", "trace", run.trace)}>trace</a></>}
        {run.job && <> · job <a href={place("queries", run.job)}>{run.job}</a></>}
      </p>
      {run.error !== null && <Failure error={new Error(run.error)} />}
      {failure !== null && <Failure error={failure} />}
      {run.state === "running" && (run.result?.rows ?? 0) === 0 && <LiveStages key={run.job ?? run.trace} id={run.job ?? run.trace} />}
      {run.plans && <PlanView plans={run.plans} />}
      {result && result.schema.fields.length > 0 && (
        <>
          <div className="toolbar">
            <button type="button" aria-pressed={shown === "rows"} onClick={() => setShown("rows")}>Rows</button>
            <button type="button" aria-pressed={shown === "chart"} onClick={() => setShown("chart")}>Chart</button>
            {FORMATS.map((format) => (
              <button key={format.name} type="button" disabled={exporting !== null} onClick={() => void download(format)}>
                {exporting === format.name ? "Exporting …" : `Export ${format.name}`}
              </button>
            ))}
          </div>
          {shown === "rows" ? <Grid result={result} /> : <Suspense fallback={<Waiting what="the chart" />}><Chart result={result} /></Suspense>}
        </>
      )}
    </section>
  );
}

function HistoryList({ close }: { close: () => void }) {
  const ran = useHistory();
  return (
    <section className="history" aria-label="History">
      {ran.length === 0 ? <p className="quiet">Nothing was run in this browser yet.</p> : (
        <>
          <button type="button" onClick={clearHistory}>Clear</button>
          <ul>
            {ran.map((each, at) => (
              <li key={at}>
                <button type="button" onClick={() => { openTab(each.sql); close(); }}><code>{each.sql.slice(0, 200)}</code></button>
                <span className="quiet">
                  <Time value={each.at} /> · {formatMs(each.ms)}
                  {each.error !== null ? " · failed" : each.rows !== null ? ` · ${formatNumber(each.rows)} rows` : ""}
                </span>
              </li>
            ))}
          </ul>
        </>
      )}
    </section>
  );
}

function parsed(text: string): unknown {
  if (text.trim() === "") return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The tables and columns that the editor completes. */
function useSchema(): Record<string, { label: string; detail: string; type: string }[]> {
  const asked = useQuery({
    queryKey: ["completion"],
    queryFn: ({ signal }) =>
      selectRows<Column>(
        "SELECT table_schema, table_name, column_name, data_type, is_nullable FROM information_schema.columns " +
          `WHERE table_schema <> 'information_schema' LIMIT ${MOST_COMPLETED}`,
        signal,
      ),
    staleTime: 60_000,
  });
  return useMemo(() => {
    const schema: Record<string, { label: string; detail: string; type: string }[]> = {};
    for (const each of asked.data ?? []) {
      const table = each.table_schema === "public" ? each.table_name : `${each.table_schema}.${each.table_name}`;
      (schema[table] ??= []).push({ label: each.column_name, detail: each.data_type, type: "property" });
    }
    return schema;
  }, [asked.data]);
}
