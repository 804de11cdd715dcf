import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import { fetchJson, send } from "../api/client";
import { Answer, Empty, Failure, Table, Time } from "../parts/basics";
import { useChange } from "./change";
import { givenBy, useMay, useRole } from "./rules";
import { useWhoAmI } from "./session";
import type { Invitation, Member } from "./types";

const MOST = 100;

export function Members({ org }: { org: number }) {
  const asked = useQuery({ queryKey: ["members"], queryFn: ({ signal }) => fetchJson<{ members: Member[] }>(`v1/members?limit=${MOST}`, { signal }) });
  const client = useQueryClient();
  const { change, failure } = useChange("members", "usage", "activity");
  const self = useWhoAmI().data?.user?.id;
  const may = useMay();
  const roles = givenBy(useRole());
  // Owners are changed and removed by themselves only.
  const isOpen = (member: Member): boolean => !member.is_owner || member.user_id === self;
  const choose = async (member: Member, role: string): Promise<void> => {
    if (member.user_id === self && !confirm(`Give yourself the role ${role}?`)) return;
    await change(() => send(`v1/members/${member.user_id}`, { method: "PATCH", json: { roles: [role] } }));
    if (member.user_id === self) await client.invalidateQueries({ queryKey: ["organizations"] });
  };
  const remove = async (member: Member): Promise<void> => {
    if (confirm(`Remove ${member.username} from the organization?`)) await change(() => send(`v1/members/${member.user_id}`, { method: "DELETE" }));
  };
  const leave = async (): Promise<void> => {
    if (!confirm("Leave the organization?")) return;
    if (await change(() => send(`v1/orgs/${org}/leave`, { method: "POST" }))) location.reload();
  };
  return (
    <>
      <Answer of={asked} what="members">
        {({ members }) => (
          <>
            <Table label="Members" head={["member", "role", "since", ""]}>
              {members.map((each) => (
                <tr key={each.user_id}>
                  <td>{each.username}</td>
                  <td>
                    {may("members:write") && isOpen(each) ? (
                      <select aria-label={`Role of ${each.username}`} value={each.roles[0]} onChange={(event) => void choose(each, event.target.value)}>
                        {roles.map((role) => <option key={role}>{role}</option>)}
                      </select>
                    ) : each.roles.join(", ")}
                  </td>
                  <td><Time value={each.created_at} /></td>
                  <td>
                    {each.user_id === self ? <button type="button" onClick={() => void leave()}>Leave the organization</button>
                      : may("members:delete") && isOpen(each) && <button type="button" onClick={() => void remove(each)}>Remove {each.username}</button>}
                  </td>
                </tr>
              ))}
            </Table>
            {members.length === MOST && <p className="quiet">The first {MOST} are shown; <code>caraway management members</code> lists all.</p>}
          </>
        )}
      </Answer>
      {failure !== null && <Failure error={failure} />}
      {may("members:write") && <Invitations />}
    </>
  );
}

function Invitations() {
  const asked = useQuery({ queryKey: ["invitations"], queryFn: ({ signal }) => fetchJson<{ invitations: Invitation[] }>(`v1/invitations?limit=${MOST}`, { signal }) });
  const { change, failure } = useChange("invitations", "usage", "activity");
  const [email, setEmail] = useState("");
  const [role, setRole] = useState("member");
  const [made, setMade] = useState<{ email: string; value: string; is_mailed: boolean } | null>(null);
  const roles = givenBy(useRole());
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    setMade(null);
    void change(async () => {
      setMade(await fetchJson("v1/invitations", { json: { email, roles: [role] } }));
      setEmail("");
    });
  };
  const revoke = async (invitation: Invitation): Promise<void> => {
    if (confirm(`Revoke the invitation of ${invitation.email}?`)) await change(() => send(`v1/invitations/${invitation.id}`, { method: "DELETE" }));
  };
  return (
    <section aria-label="Invitations">
      <h2>Invitations</h2>
      <Answer of={asked} what="invitations">
        {({ invitations }) => invitations.length === 0 ? <Empty>No open invitations.</Empty> : (
          <Table label="Open invitations" head={["address", "role", "invited by", "valid until", ""]}>
            {invitations.map((each) => (
              <tr key={each.id}>
                <td>{each.email}</td><td>{each.roles.join(", ")}</td><td>{each.invited_by}</td><td><Time value={each.expires_at} /></td>
                <td><button type="button" onClick={() => void revoke(each)}>Revoke {each.email}</button></td>
              </tr>
            ))}
          </Table>
        )}
      </Answer>
      <form className="toolbar" onSubmit={submit}>
        <label><span className="hidden">E-mail address</span><input required type="email" placeholder="E-mail address" value={email} onChange={(event) => setEmail(event.target.value)} /></label>
        <label>as{" "}
          <select value={role} onChange={(event) => setRole(event.target.value)}>{roles.map((each) => <option key={each}>{each}</option>)}</select>
        </label>
        <button type="submit">Invite</button>
      </form>
      {made !== null && (
        <p role="status">
          {made.is_mailed ? `${made.email} gets a link by mail. ` : `Hand this to ${made.email}, who signs in and joins with it. `}
          The value, which is shown once: <code>{made.value}</code>
        </p>
      )}
      {failure !== null && <Failure error={failure} />}
    </section>
  );
}
