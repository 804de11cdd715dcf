/** Server-sent events, read by `fetch`, which can send a key. */

export interface ServerEvent {
  name: string;
  data: string;
}

/** Return the events of a text that is complete up to its last empty line, and the rest. */
export function splitEvents(text: string): { events: ServerEvent[]; rest: string } {
  const parts = text.replaceAll("\r\n", "\n").split("\n\n");
  const rest = parts.pop() ?? "";
  const events = parts.map(parseEvent).filter((each) => each !== null);
  return { events, rest };
}

function parseEvent(text: string): ServerEvent | null {
  let name = "message";
  const data: string[] = [];
  for (const line of text.split("\n")) {
    const colon = line.indexOf(":");
    if (colon === 0 || line === "") continue;
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") name = value;
    else if (field === "data") data.push(value);
  }
  return data.length > 0 ? { name, data: data.join("\n") } : null;
}

/** Yield the events of a response as they arrive. */
export async function* readEvents(response: Response): AsyncGenerator<ServerEvent> {
  if (response.body === null) return;
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let waiting = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const { events, rest } = splitEvents(waiting + decoder.decode(value, { stream: true }));
      waiting = rest;
      yield* events;
    }
  } finally {
    void reader.cancel().catch(() => undefined);
  }
}
