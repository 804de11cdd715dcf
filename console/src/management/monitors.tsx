import { MonitorForm } from "./monitor_form";
import { OP_WORDS, type MonitorBody } from "./monitor_values";
import { Notices } from "./notices";
import { TEMPLATES } from "./rules";
import type { Monitor } from "./types";

export function Monitors({ id }: { id: string }) {
  return (
    <Notices<Monitor, MonitorBody> id={id} what="monitor" conditionOf={conditionOf} form={(monitor, save, close) => <MonitorForm monitor={monitor} save={save} close={close} />} />
  );
}

function conditionOf({ template, spec }: Monitor): string {
  const known = TEMPLATES[template];
  const of = spec.datasets ? ` of ${spec.datasets.join(", ")}` : "";
  return `${known?.title ?? template}${of} ${OP_WORDS[spec.op] ?? spec.op} ${spec.threshold}${known?.unit ? ` ${known.unit}` : ""} in ${spec.window}`;
}
