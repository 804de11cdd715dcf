import { useQuery } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import { fetchJson, send } from "../api/client";
import { Answer, Empty, Failure, Table } from "../parts/basics";
import { useChange } from "./change";
import type { Secret } from "./types";

export function Secrets({ id }: { id: string }) {
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
  const remove = async (removed: string): Promise<void> => {
    if (!confirm(`Remove the secret ${removed}? A manifest that names it is not valid any more.`)) return;
    await change(() => send(`v1/projects/${id}/secrets/${encodeURIComponent(removed)}`, { method: "DELETE" }));
  };
  return (
    <>
      <Answer of={asked} what="secrets">
        {({ secrets }) => secrets.length === 0 ? <Empty>No secrets. The manifest names one as {"${secrets:NAME}"}.</Empty> : (
          <Table label="Secrets" head={["name", ""]}>
            {secrets.map((each) => (
              <tr key={each.name}><td><code>{each.name}</code></td><td><button type="button" onClick={() => void remove(each.name)}>Remove {each.name}</button></td></tr>
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
const NAMES = { 1: "primary", 2: "secondary" } as const;

export function Keys({ id }: { id: string }) {
  const [isShown, setShown] = useState(false);
  const asked = useQuery({ queryKey: ["keys", id], enabled: isShown, gcTime: 0, queryFn: ({ signal }) => fetchJson<ApiKeys>(`v1/projects/${id}/api-keys`, { signal }) });
  const { change, failure } = useChange("keys", "activity");
  const regenerate = async (number: 1 | 2, name: string): Promise<void> => {
    if (!confirm(`Regenerate the ${name} key? The present one ends, and who uses it is refused.`)) return;
    await change(() => send(`v1/projects/${id}/api-keys`, { json: { key_number: number } }));
  };
  if (!isShown) return <button type="button" onClick={() => setShown(true)}>Show the keys</button>;
  return (
    <>
      <Answer of={asked} what="the keys">
        {(keys) => (
          <Table label="API keys" head={["key", "value", ""]}>
            {([1, 2] as const).map((number) => (
              <tr key={number}>
                <td>{NAMES[number]}</td>
                <td><code>{number === 1 ? keys.api_key : keys.api_key_2}</code></td>
                <td><button type="button" onClick={() => void regenerate(number, NAMES[number])}>Regenerate the {NAMES[number]} key</button></td>
              </tr>
            ))}
          </Table>
        )}
      </Answer>
      <p className="quiet">To rotate without a gap: give clients the secondary key, regenerate the primary one, give them that, and regenerate the secondary one.</p>
      {failure !== null && <Failure error={failure} />}
      <button type="button" onClick={() => setShown(false)}>Hide the keys</button>
    </>
  );
}
