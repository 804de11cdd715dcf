import { useState } from "react";
import { NameField, NoticeForm, SeverityField, SustainField, TargetFields } from "./notice_form";
import { KIND_WORDS, reactionBodyOf, reactionValuesOf, takes, type ReactionBody, type ReactionValues } from "./reaction_values";
import { REACTIONS } from "./rules";
import type { Reaction } from "./types";

interface Props {
  /** The reaction that is edited; null for a new one. */
  reaction: Reaction | null;
  save: (body: ReactionBody) => Promise<void>;
  close: () => void;
}

export function ReactionForm({ reaction, save, close }: Props) {
  const [values, setValues] = useState(() => reactionValuesOf(reaction));
  const set = (name: keyof ReactionValues) => (event: { target: { value: string } }): void => setValues((now) => ({ ...now, [name]: event.target.value }));
  const has = (field: string): boolean => takes(values.kind, field);
  return (
    <NoticeForm what="reaction" name={reaction?.name ?? null} submit={() => void save(reactionBodyOf(values, reaction))} close={close}>
      <NameField value={values.name} onChange={set("name")} />
      <label>Fires if
        <select value={values.kind} disabled={reaction !== null} onChange={set("kind")}>
          {REACTIONS.map(({ kind }) => <option key={kind} value={kind}>{KIND_WORDS[kind] ?? kind}</option>)}
        </select>
      </label>
      {has("tasks") && <label>Only these tasks, with commas<input placeholder="sql_query" value={values.tasks} onChange={set("tasks")} /></label>}
      {has("thresholdMs") && <label>Milliseconds or more<input required type="number" min={0} step="any" value={values.thresholdMs} onChange={set("thresholdMs")} /></label>}
      {has("dataset") && <label>Dataset<input required maxLength={255} value={values.dataset} onChange={set("dataset")} /></label>}
      {has("where") && <label>Condition, as behind WHERE<textarea required maxLength={8_192} spellCheck={false} value={values.where} onChange={set("where")} /></label>}
      {has("query") && <label>Query, a SELECT<textarea required maxLength={8_192} spellCheck={false} value={values.query} onChange={set("query")} /></label>}
      <fieldset>
        <legend>How</legend>
        {has("minRows") && <label>rows <input required type="number" min={1} max={100} aria-label="Rows at least" value={values.minRows} onChange={set("minRows")} /></label>}
        {has("sustainSecs") && <SustainField value={values.sustainSecs} onChange={set("sustainSecs")} />}
        <SeverityField value={values.severity} onChange={set("severity")} />
      </fieldset>
      <TargetFields values={values} present={reaction?.targets} set={set} />
    </NoticeForm>
  );
}
