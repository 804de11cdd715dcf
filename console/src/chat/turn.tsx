/** One question and its answer. */

import { useState } from "react";
import { send } from "../api/client";
import { useMayWrite } from "../api/key";
import { Failure, Table } from "../parts/basics";
import { encodeLink } from "../parts/links";
import { place } from "../parts/route";
import { sqlIn, type ToolUse } from "./streaming";

export interface Turn {
  model: string;
  question: string;
  answer?: string;
  tools?: ToolUse[];
  sql?: string;
  rows?: Record<string, unknown>[];
  error?: unknown;
}

const MOST_ROWS = 100;
const MOST_KEPT = 30_000;

export function TurnView({ turn, isDone }: { turn: Turn; isDone: boolean }) {
  const has = turn.answer !== undefined || turn.sql !== undefined;
  return (
    <article>
      <p className="question" dir="auto">{turn.question}</p>
      {turn.tools?.map((each, at) => <ToolUseView key={at} use={each} />)}
      {turn.answer !== undefined && <p className="answer" dir="auto">{turn.answer}</p>}
      {turn.sql !== undefined && <p><a href={`${place("sql")}?${encodeLink(turn.sql)}`}>Open in SQL</a> <code>{turn.sql}</code></p>}
      {turn.rows && turn.rows.length > 0 && (
        <Table label="Rows" head={Object.keys(turn.rows[0] as object)}>
          {turn.rows.slice(0, MOST_ROWS).map((row, number) => <tr key={number}>{Object.values(row).map((value, column) => <td key={column} dir="auto">{value === null ? "null" : typeof value === "object" ? JSON.stringify(value) : String(value)}</td>)}</tr>)}
        </Table>
      )}
      {turn.error !== undefined && <Failure error={turn.error} />}
      {isDone ? has && <Thumbs turn={turn} /> : <p className="quiet" role="status">The model works …</p>}
    </article>
  );
}

function ToolUseView({ use }: { use: ToolUse }) {
  const sql = sqlIn(use.given);
  return (
    <p className="tool-use">
      <span className="quiet">called</span> <strong>{use.name}</strong> <code>{sql ?? use.given}</code>
      {sql !== null && <> <a href={`${place("sql")}?${encodeLink(sql)}`}>Open in SQL</a></>}
    </p>
  );
}

function Thumbs({ turn }: { turn: Turn }) {
  const mayWrite = useMayWrite();
  const [said, setSaid] = useState<"up" | "down" | null>(null);
  const [failure, setFailure] = useState<unknown>(null);
  if (!mayWrite) return null;
  const say = async (verdict: "up" | "down"): Promise<void> => {
    setFailure(null);
    try {
      const cut = (text: string | undefined): string | undefined => text?.slice(0, MOST_KEPT);
      await send("v1/verdicts", { json: { verdict, model: turn.model, question: cut(turn.question), answer: cut(turn.answer), sql: cut(turn.sql) } });
      setSaid(verdict);
    } catch (error) {
      setFailure(error);
    }
  };
  return (
    <p>
      <button type="button" aria-pressed={said === "up"} aria-label="Good answer" onClick={() => void say("up")}>👍</button>{" "}
      <button type="button" aria-pressed={said === "down"} aria-label="Bad answer" onClick={() => void say("down")}>👎</button>
      {said !== null && <span className="quiet" role="status"> Kept by the runtime.</span>}
      {failure !== null && <Failure error={failure} />}
    </p>
  );
}
