import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { fetchJson, send } from "../api/client";
import { useMayWrite } from "../api/key";
import { EVERY_MS, tablePath, useColumns, useDatasets, useTables } from "../api/queries";
import type { Acceleration, DatasetEntry, TableName } from "../api/types";
import { Answer, Empty, Failure, Page, State, Table, Time } from "../parts/basics";
import { formatBytes, formatNumber } from "../parts/format";
import { encodeLink } from "../parts/links";
import { datasetPlace, place, useRoute } from "../parts/route";
import { Details, Partitions, useDetails } from "./details";
import { LagView } from "./lag";
import { Preview } from "./preview";

const MOST_SHOWN = 500;

export default function DataPage() {
  const { parts } = useRoute();
  const [, schema, table] = parts;
  return (
    <Page title="Data">
      <div className="columns">
        <Tree schema={schema} table={table} />
        <div className="column-main">
          {schema !== undefined && table !== undefined ? <TableView key={`${schema}.${table}`} schema={schema} table={table} /> : <Datasets />}
        </div>
      </div>
    </Page>
  );
}

function Tree({ schema, table }: { schema?: string; table?: string }) {
  const tables = useTables();
  const [filter, setFilter] = useState("");
  const [opened, setOpened] = useState<Record<string, boolean>>({ public: true });
  const [most, setMost] = useState(MOST_SHOWN);
  return (
    <nav className="tree" aria-label="Tables">
      <input type="search" aria-label="Find a table" placeholder="Find a table" value={filter} onChange={(event) => setFilter(event.target.value)} />
      <Answer of={tables} what="tables">
        {(all) => {
          const wanted = filter.toLowerCase();
          const found = wanted === "" ? all : all.filter((each) => each.table_name.toLowerCase().includes(wanted));
          return [...grouped(found)].map(([name, own]) => {
            const isOpen = wanted !== "" || (opened[name] ?? name === schema);
            return (
              <section key={name}>
                <button type="button" className="tree-schema" aria-expanded={isOpen} onClick={() => setOpened({ ...opened, [name]: !isOpen })}>
                  {isOpen ? "▾" : "▸"} {name} <span className="quiet">{formatNumber(own.length)}</span>
                </button>
                {isOpen && (
                  <ul>
                    {own.slice(0, most).map((each) => (
                      <li key={each.table_name}>
                        <a href={place("data", name, each.table_name)} aria-current={name === schema && each.table_name === table ? "page" : undefined}>
                          {each.table_name} {each.table_type === "VIEW" && <span className="quiet">view</span>}
                        </a>
                      </li>
                    ))}
                    {own.length > most && (
                      <li><button type="button" onClick={() => setMost(most + MOST_SHOWN)}>Show {formatNumber(Math.min(MOST_SHOWN, own.length - most))} more of {formatNumber(own.length - most)}</button></li>
                    )}
                  </ul>
                )}
              </section>
            );
          });
        }}
      </Answer>
    </nav>
  );
}

function grouped(tables: TableName[]): Map<string, TableName[]> {
  const found = new Map<string, TableName[]>();
  for (const each of tables) {
    const own = found.get(each.table_schema);
    if (own) own.push(each);
    else found.set(each.table_schema, [each]);
  }
  return new Map([...found].sort(([a], [b]) => (a === "public" ? -1 : b === "public" ? 1 : a.localeCompare(b))));
}

function Datasets() {
  const datasets = useDatasets();
  return (
    <Answer of={datasets} what="datasets">
      {(all) =>
        all.length === 0 ? (
          <Empty>The manifest has no datasets. Add some under <code>datasets</code>; the runtime takes changes without a restart.</Empty>
        ) : (
          <Table label="Datasets" head={["name", "from", "state", "acceleration", "reason"]}>
            {all.map((each) => (
              <tr key={each.name}>
                <td><a href={datasetPlace(each.name)}>{each.name}</a></td>
                <td><code>{each.from}</code></td>
                <td><State value={each.status ?? "initializing"} /></td>
                <td>{each.acceleration_enabled ? (each.progress ?? "on") : "off"}</td>
                <td>{each.error_message}</td>
              </tr>
            ))}
          </Table>
        )
      }
    </Answer>
  );
}

function TableView({ schema, table }: { schema: string; table: string }) {
  const columns = useColumns(schema, table);
  const datasets = useDatasets();
  const path = tablePath(schema, table);
  const name = schema === "public" ? table : `${schema}.${table}`;
  const dataset = datasets.data?.find((each) => each.name === name);
  const details = useDetails(name);
  return (
    <article>
      <header className="page-head">
        <h2>{name}</h2>
        <div className="actions"><a className="button" href={`${place("sql")}?${encodeLink(`SELECT * FROM ${path} LIMIT 100`)}`}>Open in SQL</a></div>
      </header>
      {dataset && <DatasetState dataset={dataset} />}
      {details.error ? <Failure error={details.error} retry={() => void details.refetch()} /> : null}
      {details.data?.kind === "view" && <p><State value={details.data.status} /> {details.data.error_message}</p>}
      {details.data && <Details details={details.data} />}
      {dataset?.acceleration_enabled && <Partitions name={name} />}
      <h3>Columns</h3>
      <Answer of={columns} what="columns">
        {(all) => (
          <Table label="Columns" head={["column", "type", "null"]}>
            {all.map((each) => (
              <tr key={each.column_name}><td>{each.column_name}</td><td><code>{each.data_type}</code></td><td>{each.is_nullable === "YES" ? "yes" : "no"}</td></tr>
            ))}
          </Table>
        )}
      </Answer>
      <h3>First rows</h3>
      <Preview path={path} />
    </article>
  );
}

function DatasetState({ dataset }: { dataset: DatasetEntry }) {
  return (
    <section>
      <dl className="facts">
        <dt>state</dt>
        <dd><State value={dataset.status ?? "initializing"} /></dd>
        <dt>from</dt>
        <dd><code>{dataset.from}</code></dd>
      </dl>
      {dataset.error_message && <Failure error={new Error(dataset.error_message)} />}
      {dataset.acceleration_enabled && <AccelerationView name={dataset.name} />}
    </section>
  );
}

function AccelerationView({ name }: { name: string }) {
  const client = useQueryClient();
  const address = `v1/datasets/${encodeURIComponent(name)}/acceleration`;
  const [failure, setFailure] = useState<unknown>(null);
  const [said, setSaid] = useState("");
  const mayWrite = useMayWrite();
  const standing = useQuery({
    queryKey: ["acceleration", name],
    queryFn: ({ signal }) => fetchJson<Acceleration>(address, { signal }),
    refetchInterval: (query) => (query.state.data?.refresh ? 1_000 : EVERY_MS),
  });
  const refresh = async (): Promise<void> => {
    setFailure(null);
    try {
      const answer = await send(`${address}/refresh`, { json: {} });
      setSaid(((await answer.json()) as { message: string }).message);
      await client.invalidateQueries({ queryKey: ["acceleration", name] });
    } catch (error) {
      setFailure(error);
    }
  };
  return (
    <Answer of={standing} what="the acceleration">
      {(found) => (
        <section aria-label="Acceleration">
          <h3>Acceleration</h3>
          <dl className="facts">
            <dt>mode</dt>
            <dd>{found.refresh_mode}</dd>
            {found.version && (
              <>
                <dt>version</dt>
                <dd>{found.version.number}, {formatNumber(found.version.rows)} rows, {formatBytes(found.version.bytes)}, <Time value={found.version.made_at} /></dd>
              </>
            )}
            {found.lag && (
              <>
                <dt>lag</dt>
                <dd><LagView lag={found.lag} /></dd>
              </>
            )}
            {found.changes && (
              <>
                <dt>changes</dt>
                <dd>{formatNumber(found.changes.log_rows)} rows in {found.changes.log_entries} entries of the log, {found.changes.waiting} waiting</dd>
              </>
            )}
          </dl>
          {found.refresh && <p role="status">{found.version && <progress max={Math.max(found.version.rows, found.refresh.rows)} value={found.refresh.rows} aria-label="Rows read, of those of the version before" />} Refreshing: {formatNumber(found.refresh.rows)} rows, {formatNumber(Math.round(found.refresh.rows_per_second))} a second, attempt {found.refresh.attempt}</p>}
          {found.error && <Failure error={new Error(found.error)} />}
          {mayWrite && <button type="button" onClick={() => void refresh()} disabled={Boolean(found.refresh)}>Refresh now</button>}
          {said && <span className="quiet" role="status"> {said}</span>}
          {failure !== null && <Failure error={failure} />}
        </section>
      )}
    </Answer>
  );
}
