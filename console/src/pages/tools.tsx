import { useQuery } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import { addressOf, fetchJson, send } from "../api/client";
import type { Tool } from "../api/types";
import { Answer, Empty, Failure, Page } from "../parts/basics";

interface Property { type?: string | string[]; description?: string; enum?: string[]; default?: unknown }

export default function ToolsPage() {
  const tools = useQuery({ queryKey: ["tools"], queryFn: ({ signal }) => fetchJson<Tool[]>("v1/tools", { signal }) });
  const address = addressOf("v1/mcp");
  const config = JSON.stringify({ mcpServers: { caraway: { type: "http", url: address } } }, null, 2);
  return (
    <Page title="Tools and MCP">
      <h2>Connect an agent</h2>
      <p>Agents reach the tools below by the Model Context Protocol at <code>{address}</code>. Where the runtime has keys, add the header <code>X-API-Key</code>.</p>
      <details><summary>Settings of clients that read JSON</summary><pre>{config}</pre></details>
      <details><summary>Command lines</summary><pre>{`claude mcp add --transport http caraway ${address}\ncode --add-mcp '${JSON.stringify({ name: "caraway", type: "http", url: address })}'`}</pre></details>
      <h2>Tools</h2>
      <Answer of={tools} what="tools">
        {(all) => all.length === 0 ? <Empty>The manifest has no tools.</Empty> : all.map((tool) => <ToolForm key={tool.name} tool={tool} />)}
      </Answer>
    </Page>
  );
}

function ToolForm({ tool }: { tool: Tool }) {
  const schema = (tool.parameters ?? {}) as { properties?: Record<string, Property>; required?: string[] };
  const properties = Object.entries(schema.properties ?? {});
  const [values, setValues] = useState<Record<string, string>>({});
  const [answer, setAnswer] = useState<string | null>(null);
  const [failure, setFailure] = useState<unknown>(null);
  const [isCalling, setCalling] = useState(false);
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    setFailure(null);
    setAnswer(null);
    setCalling(true);
    try {
      const given = properties.filter(([name]) => (values[name] ?? "") !== "").map(([name, property]) => [name, valueOf(values[name] as string, property)]);
      const response = await send(`v1/tools/${encodeURIComponent(tool.name)}`, { json: Object.fromEntries(given) });
      setAnswer(pretty(await response.text()));
    } catch (error) {
      setFailure(error);
    }
    setCalling(false);
  };
  return (
    <details className="tool">
      <summary><code>{tool.name}</code> <span className="quiet">{tool.description}</span></summary>
      <form onSubmit={(event) => void submit(event)}>
        {properties.map(([name, property]) => (
          <label key={name}>
            {name}{schema.required?.includes(name) ? " *" : ""} <span className="quiet">{property.description}</span>
            <input required={schema.required?.includes(name)} value={values[name] ?? ""} onChange={(event) => setValues({ ...values, [name]: event.target.value })}
              placeholder={property.default === undefined || property.default === null ? "" : JSON.stringify(property.default)} />
          </label>
        ))}
        <button type="submit" disabled={isCalling}>{isCalling ? "Calling …" : "Call"}</button>
      </form>
      {failure !== null && <Failure error={failure} />}
      {answer !== null && <pre>{answer}</pre>}
    </details>
  );
}

/** Return what a field of a form means by the type of its parameter. */
export function valueOf(text: string, property: Property): unknown {
  const types = [property.type ?? "string"].flat();
  if (types.includes("string")) return text;
  try {
    return JSON.parse(text);
  } catch {
    return types.includes("array") ? text.split(",").map((each) => each.trim()) : text;
  }
}

function pretty(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
