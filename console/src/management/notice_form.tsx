/** The parts that the forms of monitors and reactions have in common. */

import type { FormEvent, ReactNode } from "react";
import { SEVERITIES } from "./rules";
import type { TargetValues } from "./target_values";
import type { Targets } from "./types";

type OnChange = (event: { target: { value: string } }) => void;

interface Props {
  /** What is edited: a monitor or a reaction. */
  what: string;
  /** The name of what is edited; null if it is new. */
  name: string | null;
  submit: () => void;
  close: () => void;
  children: ReactNode;
}

export function NoticeForm({ what, name, submit, close, children }: Props) {
  const title = name === null ? `New ${what}` : `${what[0]?.toUpperCase()}${what.slice(1)} ${name}`;
  const onSubmit = (event: FormEvent): void => {
    event.preventDefault();
    submit();
  };
  return (
    <form className="form" aria-label={title} onSubmit={onSubmit}>
      <h3>{title}</h3>
      {children}
      <div className="toolbar">
        <button type="submit" className="main-button">{name === null ? `Add the ${what}` : `Save the ${what}`}</button>
        <button type="button" onClick={close}>Cancel</button>
      </div>
    </form>
  );
}

export function NameField({ value, onChange }: { value: string; onChange: OnChange }) {
  return <label>Name<input autoFocus required maxLength={100} value={value} onChange={onChange} /></label>;
}

export function SustainField({ value, onChange }: { value: string; onChange: OnChange }) {
  return <label>for <input required type="number" min={0} max={86_400} aria-label="Seconds that it must hold" value={value} onChange={onChange} /> s</label>;
}

export function SeverityField({ value, onChange }: { value: string; onChange: OnChange }) {
  return (
    <Choice label="Severity" value={value} onChange={onChange}>
      {SEVERITIES.map((each) => <option key={each} value={each}>{each}</option>)}
    </Choice>
  );
}

export function Choice({ label, value, onChange, children }: { label: string; value: string; onChange: OnChange; children: ReactNode }) {
  return <select aria-label={label} value={value} onChange={onChange}>{children}</select>;
}

/** The fields of where notices go. */
export function TargetFields({ values, present, set }: { values: TargetValues; present?: Targets; set: (name: keyof TargetValues) => OnChange }) {
  return (
    <fieldset>
      <legend>Notices go to</legend>
      <label>Webhook<input type="url" placeholder="https://…" value={values.url} onChange={set("url")} /></label>
      {values.url !== "" && <label>Its token<input type="password" autoComplete="off" placeholder={present?.http?.has_token ? "as it is" : "none"} value={values.token} onChange={set("token")} /></label>}
      <label>E-mail addresses, with commas<input value={values.emails} onChange={set("emails")} /></label>
      <label>Channel of Slack<input placeholder="C012AB3CD" value={values.channel} onChange={set("channel")} /></label>
    </fieldset>
  );
}
