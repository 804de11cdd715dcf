/** The answer of a model as it is written, with the tools that it calls. */

import { send } from "../api/client";
import { readEvents } from "../api/events";

export interface ToolUse {
  name: string;
  given: string;
}

export interface Written {
  text: string;
  tools: ToolUse[];
}

export interface Message {
  role: "user" | "assistant";
  content: string;
}

interface Chunk {
  model?: string;
  choices?: { delta?: { content?: string | null } }[];
  error?: { message?: string };
}

/** Where the runtime reports a call of a tool, it does so in a chunk that is of no model. */
const CALL = /^\n\[(\S+) ([\s\S]*)\]\n$/;

/** Return what is written once a chunk has come. */
export function withChunk(written: Written, chunk: Chunk): Written {
  const content = chunk.choices?.[0]?.delta?.content ?? "";
  const call = chunk.model === "" ? CALL.exec(content) : null;
  if (call === null) return { ...written, text: written.text + content };
  return { ...written, tools: [...written.tools, { name: call[1] as string, given: call[2] as string }] };
}

/** Return the statement that a tool was given; null if it was none. */
export function sqlIn(given: string): string | null {
  try {
    const found = JSON.parse(given) as { sql?: unknown; query?: unknown } | null;
    const text = found?.sql ?? found?.query;
    return typeof text === "string" ? text : null;
  } catch {
    return null;
  }
}

/** Yield what a model has written so far, with each chunk. */
export async function* chat(model: string, messages: Message[], signal: AbortSignal): AsyncGenerator<Written> {
  const response = await send("v1/chat/completions", {
    json: { model, messages, stream: true }, accept: "text/event-stream", headers: { "x-caraway-completion-progress": "enabled" }, signal,
  });
  let written: Written = { text: "", tools: [] };
  for await (const event of readEvents(response)) {
    if (event.data === "[DONE]") return;
    const chunk = JSON.parse(event.data) as Chunk;
    if (chunk.error) throw new Error(chunk.error.message ?? "the model failed");
    written = withChunk(written, chunk);
    yield written;
  }
}
