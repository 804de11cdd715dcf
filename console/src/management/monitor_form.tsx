import { useState } from "react";
import { bodyOf, DATASET_STATES, OF_DATASET_STATES, OP_WORDS, valuesOf, withTemplate, type MonitorBody, type Values } from "./monitor_values";
import { Choice, NameField, NoticeForm, SeverityField, SustainField, TargetFields } from "./notice_form";
import { OPS, TEMPLATES, WINDOWS } from "./rules";
import type { Monitor } from "./types";

interface Props {
  /** The monitor that is edited; null for a new one. */
  monitor: Monitor | null;
  save: (body: MonitorBody) => Promise<void>;
  close: () => void;
}

export function MonitorForm({ monitor, save, close }: Props) {
  const [values, setValues] = useState(() => valuesOf(monitor));
  const template = TEMPLATES[values.template];
  const isOfStates = values.template === OF_DATASET_STATES;
  const set = (name: keyof Values) => (event: { target: { value: string } }): void => setValues((now) => ({ ...now, [name]: event.target.value }));
  return (
    <NoticeForm what="monitor" name={monitor?.name ?? null} submit={() => void save(bodyOf(values, monitor))} close={close}>
      <NameField value={values.name} onChange={set("name")} />
      <label>Value
        <select value={values.template} onChange={(event) => setValues(withTemplate(values, event.target.value))}>
          {Object.entries(TEMPLATES).map(([name, each]) => <option key={name} value={name}>{each.title}{each.unit && ` (${each.unit})`}</option>)}
        </select>
      </label>
      {template?.hasDatasets && <label>Datasets, with commas<input required={isOfStates} value={values.datasets} onChange={set("datasets")} /></label>}
      <fieldset>
        <legend>Fires if the value</legend>
        <Choice label="Comparison" value={values.op} onChange={set("op")}>
          {OPS.filter((each) => !isOfStates || each === "EQ").map((each) => <option key={each} value={each}>{OP_WORDS[each] ?? each}</option>)}
        </Choice>
        {isOfStates ? (
          <Choice label="State" value={values.threshold} onChange={set("threshold")}>
            {DATASET_STATES.map((each, number) => <option key={each} value={number}>{each}</option>)}
          </Choice>
        ) : (
          <label><span className="hidden">Threshold</span><input required type="number" step="any" placeholder="Threshold" value={values.threshold} onChange={set("threshold")} /> {template?.unit}</label>
        )}
        <Choice label="Window" value={values.window} onChange={set("window")}>
          {WINDOWS.map((each) => <option key={each} value={each}>in {each}</option>)}
        </Choice>
        <SustainField value={values.sustainSecs} onChange={set("sustainSecs")} />
        <SeverityField value={values.severity} onChange={set("severity")} />
      </fieldset>
      <TargetFields values={values} present={monitor?.targets} set={set} />
    </NoticeForm>
  );
}
