import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import { fetchJson } from "../api/client";
import { Answer, Empty, Failure, Page, State, Table, Time } from "../parts/basics";
import { go, place } from "../parts/route";
import { useMay } from "./rules";
import type { Project } from "./types";

const FIRST = "version: v1\nkind: Caraway\nname: NAME\ndatasets: []\n";
const MOST = 100;

export function useProjects() {
  return useQuery({
    queryKey: ["projects"],
    queryFn: ({ signal }) => fetchJson<{ projects: Project[] }>(`v1/projects?limit=${MOST}`, { signal }),
  });
}

export default function ProjectsPage() {
  const may = useMay();
  const projects = useProjects();
  return (
    <Page title="Projects">
      {may("apps:write") && <NewProject />}
      <Answer of={projects} what="projects">
        {({ projects: all }) => all.length === 0 ? <Empty>No projects yet. A project is a manifest that is deployed as a runtime of its own.</Empty> : (
          <>
            <Table label="Projects" head={["project", "state", "description", "changed"]}>
              {all.map((each) => (
                <tr key={each.id}>
                  <td><a href={place("projects", String(each.id))}>{each.name}</a></td>
                  <td><State value={stateOf(each)} /></td>
                  <td>{each.description}</td>
                  <td><Time value={each.updated_at} /></td>
                </tr>
              ))}
            </Table>
            {all.length === MOST && <p className="quiet">The first {MOST} are shown; the others have their addresses and the command line.</p>}
          </>
        )}
      </Answer>
    </Page>
  );
}

export function stateOf(project: Project): string {
  if (project.paused_at !== null) return "paused";
  return project.endpoint === null ? "not deployed" : "deployed";
}

function NewProject() {
  const client = useQueryClient();
  const [name, setName] = useState("");
  const [failure, setFailure] = useState<unknown>(null);
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    setFailure(null);
    try {
      const made = await fetchJson<Project>("v1/projects", { json: { name, manifest: FIRST.replace("NAME", name) } });
      await client.invalidateQueries({ queryKey: ["projects"] });
      go(place("projects", String(made.id)));
    } catch (error) {
      setFailure(error);
    }
  };
  return (
    <>
      <form className="toolbar" onSubmit={(event) => void submit(event)}>
        <label><span className="hidden">Name of the project</span><input required placeholder="Name of a new project" value={name} onChange={(event) => setName(event.target.value)} /></label>
        <button type="submit">Add the project</button>
      </form>
      {failure !== null && <Failure error={failure} />}
    </>
  );
}
