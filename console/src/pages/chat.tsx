import { useQuery } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import { fetchJson } from "../api/client";
import { Answer, Empty, Failure, Page, Table } from "../parts/basics";
import { encodeLink } from "../parts/links";
import { place } from "../parts/route";

interface Models { data: { id: string; status?: string; error_message?: string | null }[] }
interface Turn {
  question: string;
  answer?: string;
  sql?: string;
  rows?: Record<string, unknown>[];
  error?: unknown;
}
const NSQL = "application/vnd.caraway.nsql.v1+json";

export function useModels() {
  return useQuery({ queryKey: ["models"], queryFn: ({ signal }) => fetchJson<Models>("v1/models?status=true", { signal }) });
}

export default function ChatPage() {
  const models = useModels();
  return (
    <Page title="Chat and questions">
      <Answer of={models} what="models">
        {({ data }) => data.length === 0 ? (
          <Empty>The manifest has no models. Add one under <code>models</code>, and questions about the data are answered here with their SQL.</Empty>
        ) : <Chat names={data.map((each) => each.id)} />}
      </Answer>
    </Page>
  );
}

function Chat({ names }: { names: string[] }) {
  const [model, setModel] = useState(names[0] as string);
  const [kind, setKind] = useState<"question" | "chat">("question");
  const [text, setText] = useState("");
  const [turns, setTurns] = useState<Turn[]>([]);
  const [isAsking, setAsking] = useState(false);
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    const question = text.trim();
    if (question === "" || isAsking) return;
    setText("");
    setAsking(true);
    let turn: Turn = { question };
    setTurns((all) => [...all, turn]);
    try {
      turn = kind === "question" ? { question, ...(await ask(model, question)) } : { question, answer: await chat(model, turns, question) };
    } catch (error) {
      turn = { question, error };
    }
    setTurns((all) => [...all.slice(0, -1), turn]);
    setAsking(false);
  };
  return (
    <>
      <div className="turns" aria-live="polite">
        {turns.map((turn, at) => (
          <article key={at}>
            <p className="question" dir="auto">{turn.question}</p>
            {turn.answer !== undefined && <p className="answer" dir="auto">{turn.answer}</p>}
            {turn.sql !== undefined && <p><a href={`${place("sql")}?${encodeLink(turn.sql)}`}>Open in SQL</a> <code>{turn.sql}</code></p>}
            {turn.rows && turn.rows.length > 0 && (
              <Table label="Rows" head={Object.keys(turn.rows[0] as object)}>
                {turn.rows.slice(0, 100).map((row, number) => <tr key={number}>{Object.values(row).map((value, column) => <td key={column} dir="auto">{value === null ? "null" : typeof value === "object" ? JSON.stringify(value) : String(value)}</td>)}</tr>)}
              </Table>
            )}
            {turn.error !== undefined && <Failure error={turn.error} />}
            {isAsking && at === turns.length - 1 && <p className="quiet" role="status">The model works …</p>}
          </article>
        ))}
      </div>
      <form className="toolbar" onSubmit={(event) => void submit(event)}>
        <label>Model{" "}<select value={model} onChange={(event) => setModel(event.target.value)}>{names.map((name) => <option key={name}>{name}</option>)}</select></label>
        <label>As{" "}<select value={kind} onChange={(event) => setKind(event.target.value as "question" | "chat")}><option value="question">a question about the data</option><option value="chat">a chat</option></select></label>
        <label className="grow"><span className="hidden">Question</span><input placeholder="Ask" value={text} onChange={(event) => setText(event.target.value)} /></label>
        <button type="submit" className="main-button" disabled={isAsking}>Ask</button>
      </form>
    </>
  );
}

async function ask(model: string, query: string): Promise<Partial<Turn>> {
  const found = await fetchJson<{ sql: string; data: Record<string, unknown>[] }>("v1/nsql", { json: { model, query }, accept: NSQL });
  return { sql: found.sql, rows: found.data };
}

async function chat(model: string, turns: Turn[], question: string): Promise<string> {
  const messages = turns.filter((turn) => turn.answer !== undefined).flatMap((turn) => [{ role: "user", content: turn.question }, { role: "assistant", content: turn.answer }]);
  const found = await fetchJson<{ choices: { message: { content: string | null } }[] }>("v1/chat/completions", { json: { model, messages: [...messages, { role: "user", content: question }] } });
  return found.choices[0]?.message.content ?? "";
}
