import { useState, type FormEvent, type ReactNode } from "react";
import { bodyOf, DATASET_STATES, OF_DATASET_STATES, OP_WORDS, valuesOf, withTemplate, type MonitorBody, type Values } from "./monitor_values";
import { OPS, SEVERITIES, TEMPLATES, WINDOWS } from "./rules";
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
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    void save(bodyOf(values, monitor));
  };
  const title = monitor === null ? "New monitor" : `Monitor ${monitor.name}`;
  return (
    <form className="form" aria-label={title} onSubmit={submit}>
      <h3>{title}</h3>
      <label>Name<input autoFocus required maxLength={100} value={values.name} onChange={set("name")} /></label>
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
        <label>for <input required type="number" min={0} max={86_400} aria-label="Seconds that it must hold" value={values.sustainSecs} onChange={set("sustainSecs")} /> s</label>
        <Choice label="Severity" value={values.severity} onChange={set("severity")}>
          {SEVERITIES.map((each) => <option key={each} value={each}>{each}</option>)}
        </Choice>
      </fieldset>
      <fieldset>
        <legend>Notices go to</legend>
        <label>Webhook<input type="url" placeholder="https://…" value={values.url} onChange={set("url")} /></label>
        {values.url !== "" && <label>Its token<input type="password" autoComplete="off" placeholder={monitor?.targets.http?.has_token ? "as it is" : "none"} value={values.token} onChange={set("token")} /></label>}
        <label>E-mail addresses, with commas<input value={values.emails} onChange={set("emails")} /></label>
        <label>Channel of Slack<input placeholder="C012AB3CD" value={values.channel} onChange={set("channel")} /></label>
      </fieldset>
      <div className="toolbar">
        <button type="submit" className="main-button">{monitor === null ? "Add the monitor" : "Save the monitor"}</button>
        <button type="button" onClick={close}>Cancel</button>
      </div>
    </form>
  );
}

function Choice({ label, value, onChange, children }: { label: string; value: string; onChange: (event: { target: { value: string } }) => void; children: ReactNode }) {
  return <select aria-label={label} value={value} onChange={onChange}>{children}</select>;
}
