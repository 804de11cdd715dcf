import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { fetchJson, send } from "../api/client";
import { Answer, Empty, Failure, State, Table, Time } from "../parts/basics";
import { useChange } from "./change";
import { MonitorForm } from "./monitor_form";
import { OP_WORDS, type MonitorBody } from "./monitor_values";
import { TEMPLATES, useMay } from "./rules";
import type { Monitor } from "./types";

const EVERY_MS = 30_000;

export function Monitors({ id }: { id: string }) {
  const asked = useQuery({ queryKey: ["monitors", id], queryFn: ({ signal }) => fetchJson<{ monitors: Monitor[] }>(`v1/projects/${id}/monitors?limit=100`, { signal }), refetchInterval: EVERY_MS });
  const { change, failure } = useChange("monitors", "activity");
  const [edited, setEdited] = useState<Monitor | "new" | null>(null);
  const [secret, setSecret] = useState<string | null>(null);
  const isWriter = useMay()("monitors:write");
  const path = `v1/projects/${id}/monitors`;
  const save = async (body: MonitorBody): Promise<void> => {
    const present = edited === "new" ? null : edited;
    const isDone = await change(async () => {
      const made = await fetchJson<Monitor>(present === null ? path : `${path}/${present.id}`, {
        method: present === null ? "POST" : "PATCH",
        json: present === null ? body : { ...body, revision: present.revision },
      });
      setSecret(made.targets.http?.signing_secret ?? null);
    });
    if (isDone) setEdited(null);
  };
  const remove = async (monitor: Monitor): Promise<void> => {
    if (confirm(`Delete the monitor ${monitor.name}?`)) await change(() => send(`${path}/${monitor.id}`, { method: "DELETE" }));
  };
  const enable = (monitor: Monitor) => change(() => send(`${path}/${monitor.id}`, { method: "PATCH", json: { enabled: !monitor.enabled, revision: monitor.revision } }));
  return (
    <>
      <Answer of={asked} what="monitors">
        {({ monitors }) => monitors.length === 0 ? <Empty>No monitors.</Empty> : (
          <Table label="Monitors" head={["monitor", "fires if", "state", "since", "notices go to", "reason", ...(isWriter ? [""] : [])]}>
            {monitors.map((each) => (
              <tr key={each.id}>
                <td>{each.name}</td>
                <td>{conditionOf(each)}</td>
                <td><State value={each.enabled ? each.state : "off"} /></td>
                <td>{each.since && <Time value={each.since} />}</td>
                <td>{targetsOf(each) || "nobody"}</td>
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
      {edited !== null && <MonitorForm key={edited === "new" ? "new" : edited.id} monitor={edited === "new" ? null : edited} save={save} close={() => setEdited(null)} />}
      {failure !== null && <Failure error={failure} />}
      {isWriter && edited === null && <button type="button" onClick={() => { setEdited("new"); setSecret(null); }}>Add a monitor</button>}
    </>
  );
}

function conditionOf({ template, spec }: Monitor): string {
  const known = TEMPLATES[template];
  const of = spec.datasets ? ` of ${spec.datasets.join(", ")}` : "";
  return `${known?.title ?? template}${of} ${OP_WORDS[spec.op] ?? spec.op} ${spec.threshold}${known?.unit ? ` ${known.unit}` : ""} in ${spec.window}`;
}

function targetsOf({ targets }: Monitor): string {
  const emails = targets.email?.emails ?? [];
  const members = targets.email?.recipientUserIds ?? [];
  return [targets.http?.url, targets.slack && `Slack ${targets.slack.channelId}`, ...emails, members.length > 0 && `${members.length} members`].filter(Boolean).join(", ");
}
