import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState, type FormEvent } from "react";
import { fetchJson } from "../api/client";
import { chat, type Message } from "../chat/streaming";
import { TurnView, type Turn } from "../chat/turn";
import { Answer, Empty, Page } from "../parts/basics";

interface Models { data: { id: string; status?: string; error_message?: string | null }[] }
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
  const [control, setControl] = useState<AbortController | null>(null);
  const running = useRef<AbortController | null>(null);
  useEffect(() => () => running.current?.abort(), []);
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    const question = text.trim();
    if (question === "" || control !== null) return;
    setText("");
    const own = (running.current = new AbortController());
    setControl(own);
    let turn: Turn = { model, question };
    setTurns((all) => [...all, turn]);
    const show = (part: Partial<Turn>): void => {
      turn = { ...turn, ...part };
      setTurns((all) => [...all.slice(0, -1), turn]);
    };
    try {
      if (kind === "question") show(await ask(model, question, own.signal));
      else for await (const written of chat(model, [...before(turns), { role: "user", content: question }], own.signal)) show({ answer: written.text, tools: written.tools });
    } catch (error) {
      show({ error: own.signal.aborted ? new Error("cancelled") : error });
    }
    setControl(null);
  };
  return (
    <>
      <div className="turns" aria-live="polite">
        {turns.map((turn, at) => <TurnView key={at} turn={turn} isDone={control === null || at < turns.length - 1} />)}
      </div>
      <form className="toolbar" onSubmit={(event) => void submit(event)}>
        <label>Model{" "}<select value={model} onChange={(event) => setModel(event.target.value)}>{names.map((name) => <option key={name}>{name}</option>)}</select></label>
        <label>As{" "}<select value={kind} onChange={(event) => setKind(event.target.value as "question" | "chat")}><option value="question">a question about the data</option><option value="chat">a chat</option></select></label>
        <label className="grow"><span className="hidden">Question</span><input placeholder="Ask" value={text} onChange={(event) => setText(event.target.value)} /></label>
        {control === null ? <button type="submit" className="main-button">Ask</button> : <button type="button" className="main-button" onClick={() => control.abort()}>Cancel</button>}
      </form>
    </>
  );
}

/** Return the turns before as messages. */
function before(turns: Turn[]): Message[] {
  return turns.filter((turn) => turn.answer !== undefined).flatMap((turn): Message[] => [{ role: "user", content: turn.question }, { role: "assistant", content: turn.answer ?? "" }]);
}

async function ask(model: string, query: string, signal: AbortSignal): Promise<Partial<Turn>> {
  const found = await fetchJson<{ sql: string; data: Record<string, unknown>[] }>("v1/nsql", { json: { model, query }, accept: NSQL, signal });
  return { sql: found.sql, rows: found.data };
}
