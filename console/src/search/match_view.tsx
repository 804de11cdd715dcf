/** One result of a search: what matched, in its text, and what its score is made of. */

import { useState } from "react";
import { fetchJson } from "../api/client";
import { quoteName } from "../api/queries";
import type { SearchAnswer, TableDetails } from "../api/types";
import { Failure, Table } from "../parts/basics";
import { datasetPlace } from "../parts/route";
import { marked, partsOf, rank, rankingsOf, type Part } from "./rankings";

export type Match = SearchAnswer["results"][number];

export const NAMES = { vector: "by meaning", text: "by words" };

export function MatchView({ match, text, where }: { match: Match; text: string; where: string }) {
  const facts = { ...match.primary_key, ...match.data };
  const hasKey = Object.keys(match.primary_key ?? {}).length > 0;
  return (
    <article>
      <header><a href={datasetPlace(match.dataset)}>{match.dataset}</a> <span className="quiet">score {match._score.toFixed(4)}</span></header>
      {Object.entries(match.matches ?? {}).map(([column, texts]) => <Passages key={column} match={match} column={column} texts={texts} hasKey={hasKey} />)}
      {Object.keys(facts).length > 0 && <dl className="facts">{Object.entries(facts).map(([name, value]) => [<dt key={name}>{name}</dt>, <dd key={`${name} value`} dir="auto">{typeof value === "object" ? JSON.stringify(value) : String(value)}</dd>])}</dl>}
      {hasKey && <Score match={match} text={text} where={where} />}
    </article>
  );
}

/** The passages of a column that matched; the whole text is read when it is asked for. */
function Passages({ match, column, texts, hasKey }: { match: Match; column: string; texts: string[]; hasKey: boolean }) {
  const [whole, setWhole] = useState<string | null>(null);
  const [failure, setFailure] = useState<unknown>(null);
  const read = async (): Promise<void> => {
    setFailure(null);
    try {
      const keys = Object.keys(match.primary_key ?? {});
      const table = match.dataset.split(".").map(quoteName).join(".");
      const sql = `SELECT ${quoteName(column)} AS t FROM ${table} WHERE ${keys.map((key, at) => `${quoteName(key)} = $${at + 1}`).join(" AND ")} LIMIT 1`;
      const rows = await fetchJson<{ t: string | null }[]>("v1/sql", { json: { sql, parameters: keys.map((key) => match.primary_key?.[key]) } });
      setWhole(rows[0]?.t ?? "");
    } catch (error) {
      setFailure(error);
    }
  };
  return (
    <>
      {whole === null ? texts.map((each, at) => <p key={at} dir="auto"><span className="quiet">{column}:</span> {each}</p>) : (
        <p dir="auto" className="whole-text"><span className="quiet">{column}:</span> {marked(whole, texts).map((each, at) => each.isMatch ? <mark key={at}>{each.text}</mark> : <span key={at}>{each.text}</span>)}</p>
      )}
      {hasKey && whole === null && <button type="button" onClick={() => void read()}>Show in its text</button>}
      {failure !== null && <Failure error={failure} />}
    </>
  );
}

function Score({ match, text, where }: { match: Match; text: string; where: string }) {
  const [parts, setParts] = useState<Part[] | null>(null);
  const [failure, setFailure] = useState<unknown>(null);
  const explain = async (): Promise<void> => {
    setFailure(null);
    try {
      const details = await fetchJson<TableDetails>(`v1/datasets/${encodeURIComponent(match.dataset)}/details`);
      // The key of the search may be another one than that of the rows.
      const named = { ...details, indexes: [...details.indexes.filter((each) => each.kind !== "primary key"), { kind: "primary key", columns: Object.keys(match.primary_key ?? {}), state: "ready" as const }] };
      const ranked = await Promise.all(rankingsOf(details).map((each) => rank(named, each, text, where)));
      setParts(partsOf(ranked, match.primary_key ?? {}));
    } catch (error) {
      setFailure(error);
    }
  };
  if (failure !== null) return <Failure error={failure} retry={() => void explain()} />;
  if (parts === null) return <button type="button" onClick={() => void explain()}>Explain the score</button>;
  if (parts.length === 0) return <p className="quiet">The dataset has no column of its own that is searched.</p>;
  return (
    <>
      <Table label="Score" head={["ranking", "column", "rank", "its score", "adds"]}>
        {parts.map(({ ranking, rank: place, score, share }) => (
          <tr key={`${ranking.kind} ${ranking.column}`}>
            <td>{NAMES[ranking.kind]}</td><td>{ranking.column}</td>
            <td className="number">{place ?? "not among the best"}</td><td className="number">{score?.toFixed(4) ?? "–"}</td>
            <td className="number">{parts.length === 1 ? "all" : share.toFixed(4)}</td>
          </tr>
        ))}
      </Table>
      {parts.length > 1 && <p className="quiet">Each ranking adds 1 / (60 + rank).</p>}
    </>
  );
}

