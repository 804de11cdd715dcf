/** The questions that more than one page asks, each kept for a while. */

import { useQuery } from "@tanstack/react-query";
import { fetchJson, selectRows, send, RequestError } from "./client";
import type { Column, DatasetEntry, Executor, TableName } from "./types";

/** How often open pages look again. A hidden tab does not. */
export const EVERY_MS = 5_000;

export function useDatasets() {
  return useQuery({
    queryKey: ["datasets"],
    queryFn: ({ signal }) => fetchJson<DatasetEntry[]>("v1/datasets?status=true", { signal }),
    refetchInterval: EVERY_MS,
  });
}

export function useTables() {
  return useQuery({
    queryKey: ["tables"],
    queryFn: ({ signal }) =>
      selectRows<TableName>(
        "SELECT table_schema, table_name, table_type FROM information_schema.tables " +
          "ORDER BY table_schema, table_name",
        signal,
      ),
    staleTime: 30_000,
  });
}

/** The columns of one table, asked for when it is opened. */
export function useColumns(schema: string, table: string, isOpen = true) {
  return useQuery({
    queryKey: ["columns", schema, table],
    enabled: isOpen,
    queryFn: ({ signal }) =>
      selectRows<Column>(
        "SELECT table_schema, table_name, column_name, data_type, is_nullable " +
          "FROM information_schema.columns " +
          `WHERE table_schema = ${quoteText(schema)} AND table_name = ${quoteText(table)} ` +
          "ORDER BY ordinal_position",
        signal,
      ),
    staleTime: 60_000,
  });
}

export function useExecutors() {
  return useQuery({
    queryKey: ["executors"],
    queryFn: ({ signal }) => fetchJson<Executor[]>("v1/cluster/executors", { signal }),
    refetchInterval: EVERY_MS,
  });
}

export interface Readiness {
  isReady: boolean;
  text: string;
}

export function useReadiness() {
  return useQuery({
    queryKey: ["ready"],
    queryFn: async ({ signal }): Promise<Readiness> => {
      try {
        const response = await send("v1/ready?verbose=true", { signal, accept: "text/plain" });
        return { isReady: true, text: await response.text() };
      } catch (error) {
        if (error instanceof RequestError && error.status === 503) {
          return { isReady: false, text: error.message };
        }
        throw error;
      }
    },
    refetchInterval: EVERY_MS,
  });
}

/** Return a text as a literal of SQL. */
export function quoteText(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

/** Return a name as an identifier of SQL, in quotes where it needs them. */
export function quoteName(name: string): string {
  return /^[a-z_][a-z0-9_]*$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`;
}

/** Return the name of a table as statements write it. */
export function tablePath(schema: string, table: string): string {
  return schema === "public" ? quoteName(table) : `${quoteName(schema)}.${quoteName(table)}`;
}
