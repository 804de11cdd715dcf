import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { fetchJson } from "../api/client";
import { Answer, Empty, Page, State, Table, Time } from "../parts/basics";
import type { Activity } from "./types";

export default function ActivityPage() {
  return <Page title="Activity"><ActivityTable /></Page>;
}

export function ActivityTable({ project }: { project?: string }) {
  const [cursors, setCursors] = useState<string[]>([]);
  const cursor = cursors[cursors.length - 1];
  const asked = useQuery({
    queryKey: ["activity", project, cursor],
    queryFn: ({ signal }) =>
      fetchJson<{ activity: Activity[]; next_cursor?: string | null }>(`v1/activity?limit=20${project ? `&project_id=${project}` : ""}${cursor ? `&cursor=${cursor}` : ""}`, { signal }),
    placeholderData: (last) => last,
  });
  return (
    <Answer of={asked} what="activity">
      {({ activity, next_cursor }) => (
        <>
          {activity.length === 0 ? <Empty>Nothing was done yet.</Empty> : (
            <Table label="Activity" head={["time", "who", "action", "on", "outcome", "from"]}>
              {activity.map((each) => (
                <tr key={each.id}>
                  <td><Time value={each.timestamp} /></td><td>{each.actor.name}</td><td>{each.action.replaceAll("_", " ")}</td>
                  <td>{each.resource.kind} {each.resource.name || each.resource.id}</td>
                  <td><State value={each.outcome} />{each.code && <> <code>{each.code}</code></>}</td><td>{each.address}</td>
                </tr>
              ))}
            </Table>
          )}
          <div className="toolbar">
            {cursors.length > 0 && <button type="button" onClick={() => setCursors(cursors.slice(0, -1))}>Newer</button>}
            {next_cursor && <button type="button" onClick={() => setCursors([...cursors, next_cursor])}>Older</button>}
          </div>
        </>
      )}
    </Answer>
  );
}
