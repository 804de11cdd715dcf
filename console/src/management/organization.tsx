import { useQuery } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import { fetchJson, send } from "../api/client";
import { Answer, Failure, Page, Table, Time } from "../parts/basics";
import { formatNumber } from "../parts/format";
import { useChange } from "./change";
import { JoinForm } from "./joining";
import { Members } from "./members";
import { useWhoAmI, type Organization } from "./session";
import type { Token, Usage } from "./types";

type Limits = Record<string, number | Record<string, number> | null>;

export default function OrganizationPage({ organization }: { organization: Organization }) {
  return (
    <Page title="Organization">
      <p>You are {organization.role} of <strong>{organization.name}</strong>.</p>
      <h2>Members</h2>
      <Members org={organization.id} />
      <h2>Plan</h2>
      <Plan org={organization.id} />
      <h2>Your tokens</h2>
      <Tokens />
      <h2>Join another organization</h2>
      <JoinForm />
    </Page>
  );
}

function Plan({ org }: { org: number }) {
  const used = useQuery({ queryKey: ["usage", org], queryFn: ({ signal }) => fetchJson<Usage>(`v1/orgs/${org}`, { signal }) });
  const limits = useQuery({ queryKey: ["limits"], queryFn: ({ signal }) => fetchJson<Limits>("v1/limits", { signal }) });
  return (
    <Answer of={limits} what="limits">
      {(found) => (
        <>
          {used.data && <p>The plan is <strong>{used.data.plan}</strong>. An administrator of the installation changes it.</p>}
          <Table label="Limits" head={["limit", "used", "allowed"]}>
            {Object.entries(found).flatMap(([name, value]) => (typeof value === "object" ? Object.entries(value ?? {}) : [[name, value] as const])).map(([name, value]) => (
              <Limit key={name} name={name} allowed={value} used={used.data?.usage[name]} />
            ))}
          </Table>
        </>
      )}
    </Answer>
  );
}

const WORDS: Record<string, string> = { apps: "projects", users: "members and open invitations", api_rps: "requests per second", pods: "instances" };

function Limit({ name, allowed, used }: { name: string; allowed: number; used?: number }) {
  const words = WORDS[name] ?? name.replaceAll("_", " ");
  const isFull = used !== undefined && allowed !== -1 && used >= allowed;
  return (
    <tr>
      <td>{words}</td>
      <td>
        {used !== undefined && allowed > 0 && <meter min={0} max={allowed} value={used} aria-label={`Used ${words}`} />}{" "}
        {used !== undefined && <span className={isFull ? "bad" : undefined}>{formatNumber(used)}{isFull && ", all of them"}</span>}
      </td>
      <td>{allowed === -1 ? "without limit" : formatNumber(allowed)}</td>
    </tr>
  );
}

function Tokens() {
  const asked = useQuery({ queryKey: ["tokens"], queryFn: ({ signal }) => fetchJson<{ tokens: Token[] }>("v1/tokens?limit=100", { signal }) });
  const self = useWhoAmI();
  const [name, setName] = useState("");
  const [isReader, setReader] = useState(true);
  const [made, setMade] = useState<string | null>(null);
  const { change, failure } = useChange("tokens");
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    const scopes = isReader ? (self.data?.scopes ?? []).filter((scope) => scope.endsWith(":read")) : ["*"];
    void change(async () => {
      const token = await fetchJson<{ token: string }>("v1/tokens", { json: { name, scopes } });
      setMade(token.token);
      setName("");
    });
  };
  const revoke = async (token: Token): Promise<void> => {
    if (confirm(`Revoke the token ${token.name}? Programs that use it are refused.`)) await change(() => send(`v1/tokens/${token.id}`, { method: "DELETE" }));
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
                <td><button type="button" onClick={() => void revoke(each)}>Revoke {each.name}</button></td>
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
