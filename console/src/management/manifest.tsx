import { lazy, Suspense, useEffect, useMemo, useState, type FormEvent } from "react";
import { fetchJson, RequestError } from "../api/client";
import { Failure, Waiting } from "../parts/basics";
import { useChange } from "./change";
import { keepDraft, readDraft, type Draft } from "./drafts";
import { readProblem } from "./problems";
import { useMay } from "./rules";
import type { Project } from "./types";

const ManifestCode = lazy(() => import("./manifest_code"));

export function ManifestEditor({ project }: { project: Project }) {
  const saved = project.config.manifest ?? "";
  const draft = useMemo(() => readDraft(project.id), [project.id]);
  // What the text was made from: a change by somebody else is then seen as one, and loses nothing.
  const [base, setBase] = useState<Draft>({ revision: draft?.revision ?? project.revision, text: saved });
  const [text, setText] = useState(draft?.text ?? saved);
  const { change, failure } = useChange("activity");
  const isReadOnly = !useMay()("apps:write") || project.repository !== null;
  const isChanged = text !== base.text;
  const problems = useMemo(() => (failure instanceof RequestError ? failure.problems.map(readProblem) : []), [failure]);
  useEffect(() => {
    if (isChanged || project.revision === base.revision) return;
    setBase({ revision: project.revision, text: saved });
    setText(saved);
  }, [project, saved, base, isChanged]);
  const write = (next: string): void => {
    setText(next);
    keepDraft(project.id, next === base.text ? null : { revision: base.revision, text: next });
  };
  const save = async (): Promise<void> => {
    if (isReadOnly || !isChanged) return;
    const headers = { "if-match": `"${base.revision}"` };
    await change(async () => {
      const found = await fetchJson<Project>(`v1/projects/${project.id}`, { method: "PUT", json: { manifest: text }, headers });
      setBase({ revision: found.revision, text });
      keepDraft(project.id, null);
    });
  };
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    void save();
  };
  const discard = (): void => {
    setBase({ revision: project.revision, text: saved });
    setText(saved);
    keepDraft(project.id, null);
  };
  return (
    <form onSubmit={submit}>
      <Suspense fallback={<Waiting what="the editor" />}>
        <ManifestCode text={text} isReadOnly={isReadOnly} problems={problems} onChange={write} onSave={() => void save()} />
      </Suspense>
      {isReadOnly ? (
        <p className="quiet">{project.repository === null ? "Your role does not change manifests." : `The manifest comes from the repository ${project.repository}.`}</p>
      ) : (
        <div className="toolbar">
          <button type="submit" disabled={!isChanged}>Save the manifest</button>
          {isChanged && <button type="button" onClick={discard}>Discard your changes</button>}
          <span className="quiet">A deployment takes it to the runtime. Ctrl+Space completes, Ctrl+S saves.</span>
        </div>
      )}
      {isChanged && project.revision > base.revision && <p role="status" className="quiet">Somebody has changed the project meanwhile. Saving is refused; copy your text, and discard your changes.</p>}
      {failure !== null && <Failure error={failure} />}
    </form>
  );
}
