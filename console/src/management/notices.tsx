/** Monitors or reactions of a project: their list, and what changes them. */

import { useQuery } from "@tanstack/react-query";
import { useState, type ReactNode } from "react";
import { fetchJson, send } from "../api/client";
import { Answer, Empty, Failure, State, Table, Time } from "../parts/basics";
import { useChange } from "./change";
import { useMay } from "./rules";
import { targetWords } from "./target_values";
import type { Noticing } from "./types";

const EVERY_MS = 30_000;

interface Props<T, Body> {
  /** The project. */
  id: string;
  what: "monitor" | "reaction";
  conditionOf: (each: T) => string;
  /** Return the form that edits one, or adds one if there is none yet. */
  form: (present: T | null, save: (body: Body) => Promise<void>, close: () => void) => ReactNode;
}

export function Notices<T extends Noticing, Body extends object>({ id, what, conditionOf, form }: Props<T, Body>) {
  const all = `${what}s`;
  const path = `v1/projects/${id}/${all}`;
  const asked = useQuery({
    queryKey: [all, id],
    queryFn: async ({ signal }) => (await fetchJson<Record<string, T[]>>(`${path}?limit=100`, { signal }))[all] ?? [],
    refetchInterval: EVERY_MS,
  });
  const { change, failure } = useChange(all, "activity");
  const [edited, setEdited] = useState<T | "new" | null>(null);
  const [secret, setSecret] = useState<string | null>(null);
  const isWriter = useMay()(`${all}:write`);
  const close = (): void => setEdited(null);
  const present = edited === "new" ? null : edited;
  const save = async (body: Body): Promise<void> => {
    const isDone = await change(async () => {
      const made = await fetchJson<T>(present === null ? path : `${path}/${present.id}`, {
        method: present === null ? "POST" : "PATCH",
        json: present === null ? body : { ...body, revision: present.revision },
      });
      setSecret(made.targets.http?.signing_secret ?? null);
    });
    if (isDone) close();
  };
  const remove = async (each: T): Promise<void> => {
    if (confirm(`Delete the ${what} ${each.name}?`)) await change(() => send(`${path}/${each.id}`, { method: "DELETE" }));
  };
  const enable = (each: T) => change(() => send(`${path}/${each.id}`, { method: "PATCH", json: { enabled: !each.enabled, revision: each.revision } }));
  return (
    <>
      <Answer of={asked} what={all}>
        {(found) => found.length === 0 ? <Empty>No {all}.</Empty> : (
          <Table label={what === "monitor" ? "Monitors" : "Reactions"} head={[what, "fires if", "state", "since", "notices go to", "reason", ...(isWriter ? [""] : [])]}>
            {found.map((each) => (
              <tr key={each.id}>
                <td>{each.name}</td>
                <td>{conditionOf(each)}</td>
                <td><State value={each.enabled || each.state === "suspended" ? each.state : "off"} /></td>
                <td>{each.since && <Time value={each.since} />}</td>
                <td>{targetWords(each.targets)}</td>
                <td>{each.evaluation_unavailable_reason ?? each.targets.http?.disabled_reason}</td>
                {isWriter && (
                  <td>
                    <button type="button" onClick={() => setEdited(each)}>Edit {each.name}</button>{" "}
                    <button type="button" onClick={() => void enable(each)}>{each.enabled ? "Turn off" : "Turn on"} {each.name}</button>{" "}
                    <button type="button" onClick={() => void remove(each)}>Delete {each.name}</button>
                  </td>
                )}
              </tr>
            ))}
          </Table>
        )}
      </Answer>
      {secret !== null && <p role="status">The secret that signs the webhook, which is shown once: <code>{secret}</code></p>}
      {edited !== null && <div key={present?.id ?? "new"}>{form(present, save, close)}</div>}
      {failure !== null && <Failure error={failure} />}
      {isWriter && edited === null && <button type="button" onClick={() => { setEdited("new"); setSecret(null); }}>Add a {what}</button>}
    </>
  );
}
