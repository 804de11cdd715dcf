/** The rankings of a dataset beside each other. */

import { useQuery } from "@tanstack/react-query";
import { useDetails } from "../data/details";
import { Answer, Empty } from "../parts/basics";
import { NAMES } from "./match_view";
import { keyOf, rank, rankingsOf, type Ranking } from "./rankings";
import type { TableDetails } from "../api/types";

const MOST = 20;

export function SideBySide({ dataset, text, where }: { dataset: string; text: string; where: string }) {
  const details = useDetails(dataset);
  return (
    <Answer of={details} what="the indexes">
      {(found) => {
        const rankings = found === null ? [] : rankingsOf(found);
        if (found === null || rankings.length === 0) return <Empty>No column of this dataset is searched.</Empty>;
        return <div className="beside">{rankings.map((each) => <OneRanking key={`${each.kind} ${each.column}`} details={found} ranking={each} text={text} where={where} />)}</div>;
      }}
    </Answer>
  );
}

function OneRanking({ details, ranking, text, where }: { details: TableDetails; ranking: Ranking; text: string; where: string }) {
  const asked = useQuery({
    queryKey: ["ranking", details.name, ranking, text, where],
    queryFn: ({ signal }) => rank(details, ranking, text, where, signal, MOST),
    retry: false,
  });
  const title = `${NAMES[ranking.kind]}: ${ranking.column}`;
  return (
    <section aria-label={title}>
      <h3>{title}</h3>
      <Answer of={asked} what="rows">
        {({ rows }) => rows.length === 0 ? <Empty>Nothing was found.</Empty> : (
          <ol className="results">
            {rows.map((row, at) => (
              <li key={at}>
                <span className="quiet">{keyOf(details).map((key) => `${key} ${String(row[key])}`).join(", ")} · score {Number(row.score).toFixed(4)}</span>
                <div dir="auto">{String(row[ranking.column] ?? "").slice(0, 200)}</div>
              </li>
            ))}
          </ol>
        )}
      </Answer>
    </section>
  );
}
