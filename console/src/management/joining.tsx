import { useQueryClient } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import { fetchJson } from "../api/client";
import { Failure } from "../parts/basics";
import { useChange } from "./change";
import { chooseOrganization } from "./session";

/** Joins the organization that an invitation is for, and goes there. */
export function JoinForm() {
  const client = useQueryClient();
  const { change, failure } = useChange();
  const [value, setValue] = useState("");
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    void change(async () => {
      const { org } = await fetchJson<{ org: { name: string } }>("v1/invitations/accept", { json: { value: value.trim() } });
      setValue("");
      chooseOrganization(org.name);
      await client.resetQueries();
    });
  };
  return (
    <form className="toolbar" onSubmit={submit}>
      <label><span className="hidden">Value of an invitation</span><input required autoComplete="off" placeholder="Value of an invitation" value={value} onChange={(event) => setValue(event.target.value)} /></label>
      <button type="submit">Join the organization</button>
      {failure !== null && <Failure error={failure} />}
    </form>
  );
}
