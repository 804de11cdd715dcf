/** The rows of a result. Only those that are seen are in the page. */

import type { Field } from "apache-arrow";
import { useEffect, useMemo, useRef, useState, type KeyboardEvent } from "react";
import { formatNumber } from "../parts/format";
import { filteredRows, sortedRows, type Sorting } from "./ordering";
import { valueAt, type Result } from "./results";
import { SummaryView } from "./summary_view";
import { isNumeric, shownText, textOf, typeName } from "./values";

const ROW = 26;
/** Browsers draw no element that is much higher. */
const HIGHEST = 8_000_000;
const AROUND = 8;
const WIDTH = 160;
const MOST_COLUMNS = 40;

export function Grid({ result }: { result: Result }) {
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, left: 0, height: 400, width: 1_000 });
  const [sorting, setSorting] = useState<Sorting | null>(null);
  const [filter, setFilter] = useState("");
  const [summary, setSummary] = useState<number | null>(null);
  const [cell, setCell] = useState<{ row: number; column: number } | null>(null);
  const fields = result.schema.fields;

  const rows = useMemo(() => {
    const among = filteredRows(result, filter);
    return sorting === null ? among : sortedRows(result, sorting, among);
  }, [result, sorting, filter]);
  const count = rows?.length ?? result.rows;

  useEffect(() => {
    const element = box.current as HTMLDivElement;
    const measure = (): void =>
      setView((last) => ({ ...last, height: element.clientHeight, width: element.clientWidth }));
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  const height = Math.min(count * ROW, HIGHEST);
  const scale = count * ROW > HIGHEST ? (count * ROW - view.height) / (HIGHEST - view.height) : 1;
  const topRow = Math.floor((view.top * scale) / ROW);
  const first = Math.max(0, topRow - AROUND);
  const last = Math.min(count, topRow + Math.ceil(view.height / ROW) + AROUND);
  const firstColumn = Math.max(0, Math.floor(view.left / WIDTH) - 1);
  const lastColumn = Math.min(fields.length, firstColumn + Math.min(MOST_COLUMNS, Math.ceil(view.width / WIDTH) + 3));
  const columns = Array.from({ length: lastColumn - firstColumn }, (_, at) => firstColumn + at);
  const offset = view.top - (topRow - first) * ROW;

  const sortBy = (column: number): void =>
    setSorting((now) =>
      now?.column !== column ? { column, isDescending: false } : now.isDescending ? null : { column, isDescending: true },
    );
  const rowAt = (at: number): number => rows?.[at] ?? at;

  const move = (event: KeyboardEvent): void => {
    const steps: Record<string, [number, number]> = {
      ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1], PageDown: [20, 0], PageUp: [-20, 0],
    };
    const step = steps[event.key];
    if (step !== undefined) {
      event.preventDefault();
      const from = cell ?? { row: topRow, column: 0 };
      const next = {
        row: Math.min(count - 1, Math.max(0, from.row + step[0])),
        column: Math.min(fields.length - 1, Math.max(0, from.column + step[1])),
      };
      setCell(next);
      const element = box.current as HTMLDivElement;
      const above = (next.row * ROW) / scale;
      if (next.row < topRow + 1 || next.row > topRow + view.height / ROW - 3) element.scrollTop = above - view.height / 2;
      if (next.column * WIDTH < view.left || (next.column + 1) * WIDTH > view.left + view.width) element.scrollLeft = next.column * WIDTH;
    } else if (event.key === "c" && (event.ctrlKey || event.metaKey) && cell !== null && String(getSelection()) === "") {
      const value = valueAt(result, cell.column, rowAt(cell.row));
      void navigator.clipboard?.writeText(textOf(value, fields[cell.column] as Field));
    }
  };

  return (
    <div className="grid-frame">
      <div className="grid-tools">
        <label>
          <span className="hidden">Filter the fetched rows</span>
          <input type="search" placeholder="Filter the fetched rows" value={filter} onChange={(event) => setFilter(event.target.value)} />
        </label>
        <span className="quiet" data-testid="row-count">
          {rows !== undefined && filter !== "" ? `${formatNumber(count)} of ` : ""}
          {formatNumber(result.rows)} rows{result.isCut ? " (the first ones)" : ""}
        </span>
      </div>
      <div className="grid" ref={box} tabIndex={0} role="grid" aria-label="Rows" aria-rowcount={count + 1} aria-colcount={fields.length}
        onScroll={(event) => { const { scrollTop, scrollLeft } = event.currentTarget; setView((now) => ({ ...now, top: scrollTop, left: scrollLeft })); }}
        onKeyDown={move}>
        <div className="grid-space" style={{ height: height + ROW + 4, width: fields.length * WIDTH }}>
          <div className="grid-head" role="row">
            {columns.map((column) => {
              const field = fields[column] as Field;
              const order = sorting?.column === column ? (sorting.isDescending ? "descending" : "ascending") : "none";
              return (
                <div key={column} role="columnheader" aria-sort={order} className="grid-cell" style={{ left: column * WIDTH, width: WIDTH }}>
                  <button type="button" aria-label={`Sort by ${field.name}`} title={typeName(field)} onClick={() => sortBy(column)}>
                    {field.name}
                    <span aria-hidden="true">{order === "none" ? "" : order === "ascending" ? " ↑" : " ↓"}</span>
                  </button>
                  <button type="button" className="grid-more" aria-label={`Summary of ${field.name}`} onClick={() => setSummary(summary === column ? null : column)}>
                    ∑
                  </button>
                </div>
              );
            })}
          </div>
          {Array.from({ length: Math.max(0, last - first) }, (_, at) => {
            const shown = first + at;
            const row = rowAt(shown);
            return (
              <div key={shown} role="row" aria-rowindex={shown + 2} className="grid-row" style={{ top: ROW + 4 + offset + at * ROW }}>
                {columns.map((column) => {
                  const field = fields[column] as Field;
                  const value = valueAt(result, column, row);
                  const isChosen = cell?.row === shown && cell.column === column;
                  return (
                    <div key={column} role="gridcell" aria-selected={isChosen} onClick={() => setCell({ row: shown, column })} dir="auto"
                      className={`grid-cell${isNumeric(field) ? " number" : ""}${value === null ? " null" : ""}${isChosen ? " chosen" : ""}`}
                      style={{ left: column * WIDTH, width: WIDTH }}>
                      {value === null ? "null" : shownText(value, field)}
                    </div>
                  );
                })}
              </div>
            );
          })}
        </div>
      </div>
      {cell !== null && <CellView result={result} row={rowAt(cell.row)} column={cell.column} close={() => setCell(null)} />}
      {summary !== null && summary < fields.length && <SummaryView result={result} column={summary} close={() => setSummary(null)} />}
    </div>
  );
}

const MOST_OF_CELL = 100_000;

function CellView({ result, row, column, close }: { result: Result; row: number; column: number; close: () => void }) {
  const field = result.schema.fields[column] as Field;
  const text = textOf(valueAt(result, column, row), field);
  if (text.length < 60) return null;
  return (
    <aside className="cell-view" aria-label={`Value of ${field.name}`}>
      <header>
        <strong>{field.name}</strong>
        <span className="quiet">{formatNumber(text.length)} characters</span>
        <button type="button" onClick={() => void navigator.clipboard?.writeText(text)}>Copy</button>
        <button type="button" onClick={close}>Close</button>
      </header>
      <pre dir="auto">{text.slice(0, MOST_OF_CELL)}</pre>
    </aside>
  );
}
