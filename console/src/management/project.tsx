import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { fetchJson, send } from "../api/client";
import { Answer, Empty, Failure, Page, State, Table, Time } from "../parts/basics";
import { useRoute } from "../parts/route";
import { ActivityTable } from "./activity";
import { useChange } from "./change";
import { ManifestEditor } from "./manifest";
import { Monitors } from "./monitors";
import { stateOf } from "./projects";
import { Reactions } from "./reactions";
import { useMay } from "./rules";
import { Keys, Secrets } from "./secrets";
import type { Deployment, LogLine, Project } from "./types";

const EVERY_MS = 3_000;
const UNFINISHED = ["queued", "in_progress"];

export default function ProjectPage() {
  const { parts } = useRoute();
  const id = parts[1] ?? "";
  const may = useMay();
  const project = useQuery({ queryKey: ["project", id], queryFn: ({ signal }) => fetchJson<Project>(`v1/projects/${id}`, { signal }), refetchInterval: EVERY_MS * 3 });
  return (
    <Page title={project.data?.name ?? "Project"}>
      <Answer of={project} what="the project">
        {(found) => (
          <>
            <p><State value={stateOf(found)} /> {found.endpoint && <code>{found.endpoint}</code>} <span className="quiet">changed <Time value={found.updated_at} /></span></p>
            {may("deployments:write") && <Lifecycle project={found} />}
            <h2>Manifest</h2>
            <ManifestEditor key={found.id} project={found} />
            <h2>Deployments</h2>
            <Deployments id={id} />
            {may("secrets:read") && <><h2>Secrets</h2><Secrets id={id} /></>}
            {may("apps:write") && <><h2>API keys</h2><Keys id={id} /></>}
            <h2>Monitors</h2>
            <Monitors id={id} />
            <h2>Reactions</h2>
            <Reactions id={id} />
            {may("activity:read") && <><h2>Activity</h2><ActivityTable project={id} /></>}
          </>
        )}
      </Answer>
    </Page>
  );
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

function Deployments({ id }: { id: string }) {
  const asked = useQuery({
    queryKey: ["deployments", id],
    queryFn: ({ signal }) => fetchJson<{ deployments: Deployment[] }>(`v1/projects/${id}/deployments?limit=10`, { signal }),
    refetchInterval: (query) => (query.state.data?.deployments.some((each) => UNFINISHED.includes(each.status)) ? 1_000 : EVERY_MS * 3),
  });
  const { change, failure } = useChange("deployments", "activity");
  const [shown, setShown] = useState<number | null>(null);
  const may = useMay();
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
                  {at > 0 && each.status === "succeeded" && may("deployments:write") && <button type="button" onClick={() => void change(() => send(`v1/projects/${id}/deployments`, { json: { target_deployment_id: each.id } }))}>Roll back to it</button>}
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
