/** The answers of the API that pages use, by its description. */

import type { components, paths } from "./schema";

/** The JSON that a route answers. */
type Json<Path extends keyof paths, Method extends "get" | "post"> = paths[Path][Method] extends {
  responses: { 200: { content: { "application/json": infer Found } } };
}
  ? Found
  : never;

export type DatasetEntry = components["schemas"]["DatasetEntry"];
export type TableDetails = components["schemas"]["TableDetails"];
export type Executor = Json<"/v1/cluster/executors", "get">[number];
export type ActiveStatements = Json<"/v1/sql/active", "get">;
export type LastHour = components["schemas"]["LastHour"];
export type Stage = Json<"/v1/sql/{query_id}/stages", "get">["stages"][number];
export type Jobs = Json<"/v1/queries", "get">;
export type SearchAnswer = Json<"/v1/search", "post">;
export type Tool = Json<"/v1/tools", "get">[number];

export type Lag = components["schemas"]["DatasetLag"];

/** The description has no shape for it; docs/reference/http-api.md has. */
export interface Acceleration {
  dataset: string;
  status: string;
  refresh_mode: string;
  version?: { number: number; rows: number; bytes: number; made_at: string } | null;
  refresh?: { attempt: number; rows: number; bytes: number; rows_per_second: number } | null;
  lag?: Lag | null;
  changes?: { log_entries: number; log_rows: number; waiting: number } | null;
  error?: string | null;
}

/** Rows of statements that pages run. */
export interface FinishedTask {
  trace_id: string;
  span_id: string;
  parent_span_id: string | null;
  task: string;
  input: string;
  start_time: string;
  execution_duration_ms: number;
  error_message: string | null;
}
export interface Column {
  table_schema: string;
  table_name: string;
  column_name: string;
  data_type: string;
  is_nullable: string;
}
export interface TableName {
  table_schema: string;
  table_name: string;
  table_type: string;
}
