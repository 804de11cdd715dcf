import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import { fetchJson, send } from "../api/client";
import { Answer, Failure, Page, Table, Time } from "../parts/basics";
import { formatNumber } from "../parts/format";
import type { Member, Token } from "./types";

export default function OrganizationPage() {
  const members = useQuery({ queryKey: ["members"], queryFn: ({ signal }) => fetchJson<{ members: Member[] }>("v1/members?limit=100", { signal }) });
  const limits = useQuery({ queryKey: ["limits"], queryFn: ({ signal }) => fetchJson<Record<string, number | Record<string, number>>>("v1/limits", { signal }) });
  return (
    <Page title="Organization">
      <h2>Members</h2>
      <Answer of={members} what="members">
        {(found) => (
          <Table label="Members" head={["member", "roles"]}>
            {found.members.map((each) => <tr key={each.user_id}><td>{each.username}</td><td>{each.roles.join(", ")}</td></tr>)}
          </Table>
        )}
      </Answer>
      <h2>Limits of the plan</h2>
      <Answer of={limits} what="limits">
        {(found) => (
          <Table label="Limits" head={["limit", "value"]}>
            {Object.entries(found).flatMap(([name, value]) =>
              typeof value === "number"
                ? [<tr key={name}><td>{name.replaceAll("_", " ")}</td><td>{value === -1 ? "none" : formatNumber(value)}</td></tr>]
                : Object.entries(value).map(([inner, number]) => <tr key={inner}><td>{inner.replaceAll("_", " ")}</td><td>{number === -1 ? "none" : formatNumber(number)}</td></tr>),
            )}
          </Table>
        )}
      </Answer>
      <h2>Your tokens</h2>
      <Tokens />
    </Page>
  );
}

function Tokens() {
  const client = useQueryClient();
  const asked = useQuery({ queryKey: ["tokens"], queryFn: ({ signal }) => fetchJson<{ tokens: Token[] }>("v1/tokens?limit=100", { signal }) });
  const self = useQuery({ queryKey: ["whoami"], queryFn: ({ signal }) => fetchJson<{ scopes: string[] }>("v1/whoami", { signal }) });
  const [name, setName] = useState("");
  const [isReader, setReader] = useState(true);
  const [made, setMade] = useState<string | null>(null);
  const [failure, setFailure] = useState<unknown>(null);
  const change = async (work: () => Promise<void>): Promise<void> => {
    setFailure(null);
    try {
      await work();
    } catch (error) {
      setFailure(error);
    }
    await client.invalidateQueries({ queryKey: ["tokens"] });
  };
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    const scopes = isReader ? (self.data?.scopes ?? []).filter((scope) => scope.endsWith(":read")) : ["*"];
    void change(async () => {
      const token = await fetchJson<{ token: string }>("v1/tokens", { json: { name, scopes } });
      setMade(token.token);
      setName("");
    });
  };
  return (
    <>
      <Answer of={asked} what="tokens">
        {({ tokens }) => (
          <Table label="Tokens" head={["token", "begins with", "made", "used last", "ends", ""]}>
            {tokens.map((each) => (
              <tr key={each.id}>
                <td>{each.name}</td><td><code>{each.hint}</code></td><td><Time value={each.created_at} /></td>
                <td>{each.last_used_at && <Time value={each.last_used_at} />}</td><td>{each.expires_at && <Time value={each.expires_at} />}</td>
                <td><button type="button" onClick={() => void change(async () => { await send(`v1/tokens/${each.id}`, { method: "DELETE" }); })}>Revoke {each.name}</button></td>
              </tr>
            ))}
          </Table>
        )}
      </Answer>
      <form className="toolbar" onSubmit={submit}>
        <label><span className="hidden">Name of the token</span><input required placeholder="Name of a new token" value={name} onChange={(event) => setName(event.target.value)} /></label>
        <label>It may{" "}
          <select value={isReader ? "read" : "all"} onChange={(event) => setReader(event.target.value === "read")}>
            <option value="read">read</option>
            <option value="all">do all that you may</option>
          </select>
        </label>
        <button type="submit" disabled={self.data === undefined}>Make a token</button>
      </form>
      {made !== null && <p role="status">The new token, which is shown once: <code>{made}</code></p>}
      {failure !== null && <Failure error={failure} />}
    </>
  );
}
