/** What a table reads and what reads it, its indexes, its partitions, and what the manifest says of it. */

import { useQuery } from "@tanstack/react-query";
import { fetchJson, RequestError, selectRows } from "../api/client";
import { EVERY_MS, quoteText } from "../api/queries";
import type { TableDetails } from "../api/types";
import { Answer, State, Table } from "../parts/basics";
import { formatBytes, formatNumber } from "../parts/format";
import { encodeLink } from "../parts/links";
import { datasetPlace, place } from "../parts/route";

/** Ask for the details of a dataset or view; null: the table is of another kind. */
export function useDetails(name: string) {
  return useQuery({
    queryKey: ["details", name],
    queryFn: async ({ signal }): Promise<TableDetails | null> => {
      try {
        return await fetchJson<TableDetails>(`v1/datasets/${encodeURIComponent(name)}/details`, { signal });
      } catch (error) {
        if (error instanceof RequestError && error.status === 404) return null;
        throw error;
      }
    },
    staleTime: EVERY_MS,
  });
}

export function Details({ details }: { details: TableDetails }) {
  return (
    <>
      {details.description && <p>{details.description}</p>}
      {details.sql && (
        <details>
          <summary>Query</summary>
          <pre dir="auto">{details.sql}</pre>
          <a href={`${place("sql")}?${encodeLink(details.sql)}`}>Open the query in SQL</a>
        </details>
      )}
      {details.reads.length + details.read_by.length > 0 && (
        <section aria-label="Lineage">
          <h3>Lineage</h3>
          <dl className="facts">
            <dt>reads</dt>
            <dd><Names names={details.reads} /></dd>
            <dt>is read by</dt>
            <dd><Names names={details.read_by} /></dd>
          </dl>
        </section>
      )}
      {details.indexes.length > 0 && (
        <>
          <h3>Indexes</h3>
          <Table label="Indexes" head={["kind", "columns", "state"]}>
            {details.indexes.map((each) => (
              <tr key={`${each.kind} ${each.columns.join()}`}><td>{each.kind}</td><td>{each.columns.join(", ")}</td><td><State value={each.state} /></td></tr>
            ))}
          </Table>
        </>
      )}
      {details.definition && (
        <details>
          <summary>In the manifest: {details.definition.file}, line {details.definition.line}</summary>
          <pre>{details.definition.text}</pre>
        </details>
      )}
    </>
  );
}

function Names({ names }: { names: string[] }) {
  if (names.length === 0) return <>nothing of the manifest</>;
  return <>{names.map((each, at) => <span key={each}>{at > 0 && ", "}<a href={datasetPlace(each)}>{each}</a></span>)}</>;
}

interface Partition { partition: string; executors: string[]; rows: number; size_bytes: number }

const MOST = 200;

/** The partitions of an accelerated dataset, and the executors that hold them. */
export function Partitions({ name }: { name: string }) {
  const asked = useQuery({
    queryKey: ["partitions", name],
    queryFn: ({ signal }) =>
      selectRows<Partition>(
        `SELECT partition, executors, rows, size_bytes FROM runtime.partitions WHERE dataset = ${quoteText(name)} ORDER BY size_bytes DESC LIMIT ${MOST + 1}`, signal,
      ),
    staleTime: EVERY_MS,
  });
  return (
    <Answer of={asked} what="partitions">
      {(all) => all.length === 0 ? null : (
        <>
          <h3>Partitions on executors</h3>
          <Table label="Partitions" head={["partition", "executors", "rows", "size"]}>
            {all.slice(0, MOST).map((each) => (
              <tr key={each.partition}>
                <td><code>{each.partition.slice(0, 80)}</code></td><td>{each.executors.join(", ")}</td>
                <td className="number">{formatNumber(each.rows)}</td><td className="number">{formatBytes(each.size_bytes)}</td>
              </tr>
            ))}
          </Table>
          {all.length > MOST && <p className="quiet">The largest {MOST}; <code>runtime.partitions</code> has all.</p>}
        </>
      )}
    </Answer>
  );
}
