import { useQuery } from "@tanstack/react-query";
import { fetchJson } from "../api/client";
import { Answer, Empty, Page, State, Table } from "../parts/basics";
import { useModels } from "./chat";

interface Func { name: string; kind: string; volatility: string; signature: string; description: string | null }
interface Workers { data: { name: string; description: string | null; is_llm: boolean }[] }

export default function ListsPage() {
  const models = useModels();
  const functions = useQuery({ queryKey: ["functions"], queryFn: ({ signal }) => fetchJson<Func[]>("v1/functions", { signal }) });
  const workers = useQuery({ queryKey: ["workers"], queryFn: ({ signal }) => fetchJson<Workers>("v1/workers", { signal }) });
  return (
    <Page title="Functions, models, workers">
      <h2>Functions</h2>
      <Answer of={functions} what="functions">
        {(all) => all.length === 0 ? <Empty>The manifest has no functions.</Empty> : (
          <Table label="Functions" head={["function", "kind", "volatility", "description"]}>
            {all.map((each) => <tr key={each.signature}><td><code>{each.signature}</code></td><td>{each.kind}</td><td>{each.volatility}</td><td>{each.description}</td></tr>)}
          </Table>
        )}
      </Answer>
      <h2>Models</h2>
      <Answer of={models} what="models">
        {({ data }) => data.length === 0 ? <Empty>The manifest has no models.</Empty> : (
          <Table label="Models" head={["model", "state", "reason"]}>
            {data.map((each) => <tr key={each.id}><td>{each.id}</td><td><State value={each.status ?? "ready"} /></td><td>{each.error_message}</td></tr>)}
          </Table>
        )}
      </Answer>
      <h2>Workers</h2>
      <Answer of={workers} what="workers">
        {({ data }) => data.length === 0 ? <Empty>The manifest has no workers.</Empty> : (
          <Table label="Workers" head={["worker", "answers chats", "description"]}>
            {data.map((each) => <tr key={each.name}><td>{each.name}</td><td>{each.is_llm ? "yes" : "no"}</td><td>{each.description}</td></tr>)}
          </Table>
        )}
      </Answer>
    </Page>
  );
}
