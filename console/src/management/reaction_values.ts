/** A reaction as its form has it, and as requests do. */

import { REACTIONS } from "./rules";
import { changedTargets, listOf, targetValuesOf, type TargetValues } from "./target_values";
import type { Reaction, ReactionSpec, Targets } from "./types";

/** What a reaction of each kind reacts to. */
export const KIND_WORDS: Record<string, string> = {
  task_history_error: "a task fails",
  task_history_timeout: "a task exceeds its time limit",
  task_history_slow: "a task is slow",
  dataset_row_match: "rows of a dataset match",
  dataset_query: "a query returns rows",
};

export interface ReactionBody {
  name: string;
  kind?: string;
  spec: Partial<ReactionSpec>;
  targets?: Targets;
}
export interface ReactionValues extends TargetValues {
  name: string;
  kind: string;
  tasks: string;
  thresholdMs: string;
  dataset: string;
  where: string;
  query: string;
  minRows: string;
  sustainSecs: string;
  severity: string;
}

export function reactionValuesOf(reaction: Reaction | null): ReactionValues {
  const spec = reaction?.spec;
  return {
    name: reaction?.name ?? "",
    kind: reaction?.kind ?? REACTIONS[0]?.kind ?? "",
    tasks: (spec?.tasks ?? []).join(", "),
    thresholdMs: spec?.thresholdMs === undefined ? "" : String(spec.thresholdMs),
    dataset: spec?.dataset ?? "",
    where: spec?.where ?? "",
    query: spec?.query ?? "",
    minRows: String(spec?.minRows ?? 1),
    sustainSecs: String(spec?.sustainSecs ?? 0),
    severity: spec?.severity ?? "warn",
    ...targetValuesOf(reaction?.targets),
  };
}

/** Return whether reactions of a kind take a field. */
export function takes(kind: string, field: string): boolean {
  return REACTIONS.find((each) => each.kind === kind)?.fields.includes(field) ?? false;
}

/** Return what a request sends: the fields that the kind takes. The kind itself stays. */
export function reactionBodyOf(values: ReactionValues, present: Reaction | null): ReactionBody {
  const all: Partial<ReactionSpec> = {
    tasks: listOf(values.tasks), thresholdMs: Number(values.thresholdMs), dataset: values.dataset.trim(), where: values.where, query: values.query,
    minRows: Number(values.minRows), sustainSecs: Number(values.sustainSecs),
  };
  const taken = Object.entries(all).filter(([field]) => takes(values.kind, field));
  const spec: Partial<ReactionSpec> = { ...Object.fromEntries(taken), severity: values.severity };
  const { name, kind } = values;
  return { name, ...(present === null ? { kind } : {}), spec, ...changedTargets(values, present?.targets) };
}

/** Return when a reaction fires, in words. */
export function conditionOf({ kind, spec }: Reaction): string {
  const lasting = spec.sustainSecs ? ` for ${spec.sustainSecs} s` : "";
  const rows = spec.minRows === 1 ? "a row" : `${spec.minRows} rows`;
  if (kind === "dataset_row_match") return `${rows} of ${spec.dataset} with ${shortened(spec.where ?? "")}${lasting}`;
  if (kind === "dataset_query") return `${rows} from ${shortened(spec.query ?? "")}${lasting}`;
  const of = spec.tasks && spec.tasks.length > 0 ? ` (${spec.tasks.join(", ")})` : "";
  const limit = spec.thresholdMs === undefined ? "" : `: ${spec.thresholdMs} ms or more`;
  return `${KIND_WORDS[kind] ?? kind}${of}${limit}`;
}

function shortened(sql: string): string {
  const line = sql.replaceAll(/\s+/g, " ").trim();
  return line.length > 80 ? `${line.slice(0, 80)}…` : line;
}
