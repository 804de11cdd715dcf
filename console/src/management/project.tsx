import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState, type FormEvent } from "react";
import { fetchJson, send } from "../api/client";
import { Answer, Empty, Failure, Page, State, Table, Time } from "../parts/basics";
import { useRoute } from "../parts/route";
import { ActivityTable } from "./activity";
import { stateOf } from "./projects";
import type { Deployment, LogLine, Monitor, Project, Secret } from "./types";

const EVERY_MS = 3_000;
const UNFINISHED = ["queued", "in_progress"];

export default function ProjectPage() {
  const { parts } = useRoute();
  const id = parts[1] ?? "";
  const project = useQuery({ queryKey: ["project", id], queryFn: ({ signal }) => fetchJson<Project>(`v1/projects/${id}`, { signal }), refetchInterval: EVERY_MS * 3 });
  return (
    <Page title={project.data?.name ?? "Project"}>
      <Answer of={project} what="the project">
        {(found) => (
          <>
            <p><State value={stateOf(found)} /> {found.endpoint && <code>{found.endpoint}</code>} <span className="quiet">changed <Time value={found.updated_at} /></span></p>
            <Lifecycle project={found} />
            <h2>Manifest</h2>
            <ManifestEditor key={found.id} project={found} />
            <h2>Deployments</h2>
            <Deployments id={id} />
            <h2>Secrets</h2>
            <Secrets id={id} />
            <h2>API keys</h2>
            <Keys id={id} />
            <h2>Monitors</h2>
            <Monitors id={id} />
            <h2>Activity</h2>
            <ActivityTable project={id} />
          </>
        )}
      </Answer>
    </Page>
  );
}

/** Return a function that changes something, shows why it failed, and asks again for what has changed. */
function useChange(...keys: string[]) {
  const client = useQueryClient();
  const [failure, setFailure] = useState<unknown>(null);
  const change = async (work: () => Promise<unknown>): Promise<boolean> => {
    setFailure(null);
    try {
      await work();
    } catch (error) {
      setFailure(error);
      return false;
    }
    await Promise.all(keys.map((key) => client.invalidateQueries({ queryKey: [key] })));
    return true;
  };
  return { change, failure };
}

function Lifecycle({ project }: { project: Project }) {
  const { change, failure } = useChange("project", "deployments", "activity");
  const isPaused = project.paused_at !== null;
  const post = (path: string, json: object = {}) => change(() => send(`v1/projects/${project.id}/${path}`, { json }));
  return (
    <>
      <div className="toolbar">
        <button type="button" className="main-button" onClick={() => void post("deployments")} disabled={isPaused}>Deploy</button>
        <button type="button" onClick={() => void post(isPaused ? "resume" : "pause")}>{isPaused ? "Resume" : "Pause"}</button>
      </div>
      {failure !== null && <Failure error={failure} />}
    </>
  );
}

function ManifestEditor({ project }: { project: Project }) {
  // What the text was made from: a change by somebody else is then seen as one, and loses nothing.
  const [base, setBase] = useState(project);
  const [text, setText] = useState(project.config.manifest ?? "");
  const { change, failure } = useChange("activity");
  const isChanged = text !== (base.config.manifest ?? "");
  useEffect(() => {
    if (isChanged || project.revision === base.revision) return;
    setBase(project);
    setText(project.config.manifest ?? "");
  }, [project, base, isChanged]);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    const headers = { "if-match": `"${base.revision}"` };
    void change(async () => setBase(await fetchJson<Project>(`v1/projects/${project.id}`, { method: "PUT", json: { manifest: text }, headers })));
  };
  return (
    <form onSubmit={submit}>
      <label><span className="hidden">Manifest</span>
        <textarea className="manifest" rows={14} spellCheck={false} value={text} onChange={(event) => setText(event.target.value)} aria-invalid={failure !== null} />
      </label>
      <button type="submit" disabled={!isChanged}>Save the manifest</button>{" "}
      <span className="quiet">A deployment takes it to the runtime.</span>
      {isChanged && project.revision > base.revision && <p role="status" className="quiet">Somebody has changed the project meanwhile. Saving is refused; copy your text, and reload the page.</p>}
      {failure !== null && <Failure error={failure} />}
    </form>
  );
}

function Deployments({ id }: { id: string }) {
  const asked = useQuery({
    queryKey: ["deployments", id],
    queryFn: ({ signal }) => fetchJson<{ deployments: Deployment[] }>(`v1/projects/${id}/deployments?limit=10`, { signal }),
    refetchInterval: (query) => (query.state.data?.deployments.some((each) => UNFINISHED.includes(each.status)) ? 1_000 : EVERY_MS * 3),
  });
  const { change, failure } = useChange("deployments", "activity");
  const [shown, setShown] = useState<number | null>(null);
  return (
    <>
      {failure !== null && <Failure error={failure} />}
      <Answer of={asked} what="deployments">
        {({ deployments }) => deployments.length === 0 ? <Empty>Nothing was deployed yet.</Empty> : (
          <Table label="Deployments" head={["deployment", "state", "begun", "by", "reason", ""]}>
            {deployments.map((each, at) => (
              <tr key={each.id}>
                <td>{each.id}</td>
                <td><State value={each.status} /></td>
                <td><Time value={each.created_at} /></td>
                <td>{each.created_by}</td>
                <td>{each.error_message} {each.error_code && <code>{each.error_code}</code>}</td>
                <td>
                  <button type="button" aria-expanded={shown === each.id} onClick={() => setShown(shown === each.id ? null : each.id)}>Log</button>{" "}
                  {at > 0 && each.status === "succeeded" && <button type="button" onClick={() => void change(() => send(`v1/projects/${id}/deployments`, { json: { target_deployment_id: each.id } }))}>Roll back to it</button>}
                </td>
              </tr>
            ))}
          </Table>
        )}
      </Answer>
      {shown !== null && <Log key={shown} id={id} deployment={shown} />}
    </>
  );
}

function Log({ id, deployment }: { id: string; deployment: number }) {
  const asked = useQuery({
    queryKey: ["log", id, deployment],
    queryFn: ({ signal }) => fetchJson<{ logs: LogLine[] }>(`v1/projects/${id}/deployments/${deployment}/logs`, { signal }),
    refetchInterval: EVERY_MS,
  });
  return (
    <section aria-label={`Log of deployment ${deployment}`}>
      <Answer of={asked} what="the log">
        {({ logs }) => logs.length === 0 ? <Empty>The log is empty.</Empty> : <pre>{logs.map((line) => `${line.timestamp.slice(0, 19)} ${line.level} ${line.message}`).join("\n")}</pre>}
      </Answer>
    </section>
  );
}

function Secrets({ id }: { id: string }) {
  const asked = useQuery({ queryKey: ["secrets", id], queryFn: ({ signal }) => fetchJson<{ secrets: Secret[] }>(`v1/projects/${id}/secrets`, { signal }) });
  const { change, failure } = useChange("secrets", "activity");
  const [name, setName] = useState("");
  const [value, setValue] = useState("");
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    if (await change(() => send(`v1/projects/${id}/secrets`, { json: { name, value } }))) {
      setName("");
      setValue("");
    }
  };
  return (
    <>
      <Answer of={asked} what="secrets">
        {({ secrets }) => secrets.length === 0 ? <Empty>No secrets. The manifest names one as {"${secrets:NAME}"}.</Empty> : (
          <Table label="Secrets" head={["name", ""]}>
            {secrets.map((each) => (
              <tr key={each.name}><td><code>{each.name}</code></td><td><button type="button" onClick={() => void change(() => send(`v1/projects/${id}/secrets/${encodeURIComponent(each.name)}`, { method: "DELETE" }))}>Remove {each.name}</button></td></tr>
            ))}
          </Table>
        )}
      </Answer>
      <form className="toolbar" onSubmit={(event) => void submit(event)}>
        <label><span className="hidden">Name of the secret</span><input required placeholder="NAME" value={name} onChange={(event) => setName(event.target.value)} /></label>
        <label><span className="hidden">Value of the secret</span><input required type="password" autoComplete="off" placeholder="Value" value={value} onChange={(event) => setValue(event.target.value)} /></label>
        <button type="submit">Set the secret</button>
      </form>
      {failure !== null && <Failure error={failure} />}
    </>
  );
}

interface ApiKeys { api_key: string; api_key_2: string }

function Keys({ id }: { id: string }) {
  const [isShown, setShown] = useState(false);
  const asked = useQuery({ queryKey: ["keys", id], enabled: isShown, gcTime: 0, queryFn: ({ signal }) => fetchJson<ApiKeys>(`v1/projects/${id}/api-keys`, { signal }) });
  const { change, failure } = useChange("keys", "activity");
  if (!isShown) return <button type="button" onClick={() => setShown(true)}>Show the keys</button>;
  return (
    <>
      <Answer of={asked} what="the keys">
        {(keys) => (
          <Table label="API keys" head={["key", "value", ""]}>
            {([1, 2] as const).map((number) => (
              <tr key={number}>
                <td>{number === 1 ? "primary" : "secondary"}</td>
                <td><code>{number === 1 ? keys.api_key : keys.api_key_2}</code></td>
                <td><button type="button" onClick={() => void change(() => send(`v1/projects/${id}/api-keys`, { json: { key_number: number } }))}>Regenerate the {number === 1 ? "primary" : "secondary"} key</button></td>
              </tr>
            ))}
          </Table>
        )}
      </Answer>
      {failure !== null && <Failure error={failure} />}
      <button type="button" onClick={() => setShown(false)}>Hide the keys</button>
    </>
  );
}

function Monitors({ id }: { id: string }) {
  const asked = useQuery({ queryKey: ["monitors", id], queryFn: ({ signal }) => fetchJson<{ monitors: Monitor[] }>(`v1/projects/${id}/monitors`, { signal }), refetchInterval: 30_000 });
  return (
    <Answer of={asked} what="monitors">
      {({ monitors }) => monitors.length === 0 ? <Empty>No monitors.</Empty> : (
        <Table label="Monitors" head={["monitor", "template", "state", "since", "reason"]}>
          {monitors.map((each) => (
            <tr key={each.id}><td>{each.name}</td><td>{each.template}</td><td><State value={each.enabled ? each.state : "off"} /></td><td>{each.since && <Time value={each.since} />}</td><td>{each.evaluation_unavailable_reason}</td></tr>
          ))}
        </Table>
      )}
    </Answer>
  );
}
