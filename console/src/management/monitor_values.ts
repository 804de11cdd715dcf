/** A monitor as its form has it, and as requests do. */

import { TEMPLATES } from "./rules";
import { changedTargets, listOf, targetValuesOf, type TargetValues } from "./target_values";
import type { Monitor, MonitorSpec, Targets } from "./types";

export const OP_WORDS: Record<string, string> = { GT: "is above", GEQ: "is at least", LT: "is below", LEQ: "is at most", EQ: "is", NEQ: "is not" };
export const DATASET_STATES = ["initializing", "ready", "disabled", "error", "refreshing", "shutting down"];
export const OF_DATASET_STATES = "dataset_status";

export interface MonitorBody {
  name: string;
  template: string;
  spec: Partial<MonitorSpec>;
  targets?: Targets;
}
export interface Values extends TargetValues {
  name: string;
  template: string;
  op: string;
  threshold: string;
  window: string;
  sustainSecs: string;
  severity: string;
  datasets: string;
}

export function valuesOf(monitor: Monitor | null): Values {
  const template = monitor?.template ?? Object.keys(TEMPLATES)[0] ?? "";
  const spec = monitor?.spec;
  return {
    name: monitor?.name ?? "",
    template,
    op: spec?.op ?? TEMPLATES[template]?.op ?? "GT",
    threshold: spec === undefined ? "" : String(spec.threshold),
    window: spec?.window ?? "5m",
    sustainSecs: String(spec?.sustainSecs ?? TEMPLATES[template]?.sustainSecs ?? 0),
    severity: spec?.severity ?? "warn",
    datasets: (spec?.datasets ?? []).join(", "),
    ...targetValuesOf(monitor?.targets),
  };
}

/** Return the values after another template was chosen: its own condition goes with it. */
export function withTemplate(values: Values, template: string): Values {
  const known = TEMPLATES[template];
  const threshold = template === OF_DATASET_STATES ? "3" : values.template === OF_DATASET_STATES ? "" : values.threshold;
  return { ...values, template, op: known?.op ?? values.op, sustainSecs: String(known?.sustainSecs ?? 0), threshold };
}

/** Return what a request sends. */
export function bodyOf(values: Values, present: Monitor | null): MonitorBody {
  const known = TEMPLATES[values.template];
  const spec: Partial<MonitorSpec> = {
    op: values.op, threshold: Number(values.threshold), window: values.window, sustainSecs: Number(values.sustainSecs), severity: values.severity,
    ...(known?.hasDatasets ? { datasets: listOf(values.datasets) } : {}),
  };
  const body: MonitorBody = { name: values.name, template: values.template, spec };
  return { ...body, ...changedTargets(values, present?.targets) };
}
