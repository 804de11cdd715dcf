import { useQuery } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import { fetchJson } from "../api/client";
import { useDatasets } from "../api/queries";
import type { SearchAnswer } from "../api/types";
import { Answer, Empty, Failure, Page } from "../parts/basics";
import { MatchView } from "../search/match_view";
import { SideBySide } from "../search/side_by_side";

interface Wanted { text: string; datasets?: string[]; where?: string; keywords?: string[]; limit: number }

export default function SearchPage() {
  const datasets = useDatasets();
  const [text, setText] = useState("");
  const [dataset, setDataset] = useState("");
  const [where, setWhere] = useState("");
  const [keywords, setKeywords] = useState("");
  const [isBeside, setBeside] = useState(false);
  const [wanted, setWanted] = useState<Wanted | null>(null);
  const asked = useQuery({
    queryKey: ["search", wanted],
    enabled: wanted !== null,
    queryFn: ({ signal }) => fetchJson<SearchAnswer>("v1/search", { json: wanted, signal }),
    retry: false,
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (text.trim() === "") return;
    setWanted({
      text, limit: 20,
      ...(dataset ? { datasets: [dataset] } : {}),
      ...(where.trim() ? { where } : {}),
      ...(keywords.trim() ? { keywords: keywords.split(/[,\s]+/).filter(Boolean) } : {}),
    });
  };
  return (
    <Page title="Search">
      <form className="toolbar" role="search" onSubmit={submit}>
        <label className="grow"><span className="hidden">Text</span><input type="search" autoFocus placeholder="What to search for" value={text} onChange={(event) => setText(event.target.value)} /></label>
        <label>In{" "}
          <select value={dataset} onChange={(event) => setDataset(event.target.value)}>
            <option value="">all datasets</option>
            {(datasets.data ?? []).map((each) => <option key={each.name}>{each.name}</option>)}
          </select>
        </label>
        <label><span className="hidden">Filter</span><input placeholder="Filter, as in WHERE" value={where} onChange={(event) => setWhere(event.target.value)} /></label>
        <label><span className="hidden">Keywords</span><input placeholder="Keywords" value={keywords} onChange={(event) => setKeywords(event.target.value)} /></label>
        <label><input type="checkbox" checked={isBeside} disabled={dataset === ""} onChange={(event) => setBeside(event.target.checked)} /> rankings side by side</label>
        <button type="submit" className="main-button">Search</button>
      </form>
      {wanted === null ? (
        <Empty>Datasets with embeddings or a full-text index are searched by meaning and by words; the guide “Search” of the documentation shows how a column gets one.</Empty>
      ) : isBeside && wanted.datasets?.[0] !== undefined ? (
        <SideBySide dataset={wanted.datasets[0]} text={wanted.text} where={wanted.where ?? ""} />
      ) : asked.error ? <Failure error={asked.error} /> : (
        <Answer of={asked} what="results">
          {(found) => (
            <>
              <p className="quiet" role="status">{found.results.length} results in {found.duration_ms} ms</p>
              <ol className="results">
                {found.results.map((each, at) => <li key={at}><MatchView match={each} text={wanted.text} where={wanted.where ?? ""} /></li>)}
              </ol>
            </>
          )}
        </Answer>
      )}
    </Page>
  );
}
