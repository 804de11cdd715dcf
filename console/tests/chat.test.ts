import { afterEach, describe, expect, it, vi } from "vitest";
import { chat, sqlIn, withChunk } from "../src/chat/streaming";

const chunk = (content: string, model = "m") => ({ model, choices: [{ delta: { content } }] });

afterEach(() => vi.unstubAllGlobals());

async function answered(body: string): Promise<string> {
  vi.stubGlobal("document", { baseURI: "http://runtime.test/" });
  vi.stubGlobal("fetch", async () => new Response(body));
  let last = "";
  for await (const written of chat("m", [], new AbortController().signal)) last = `${written.tools.map((each) => each.name).join()}|${written.text}`;
  return last;
}

describe("a chat", () => {
  it("grows by chunks, and lists the tools that were called", () => {
    let written = withChunk({ text: "", tools: [] }, chunk("Let me see."));
    written = withChunk(written, chunk('\n[sql {"query": "SELECT [1]"}]\n', ""));
    written = withChunk(written, chunk("It is 1."));
    expect(written).toEqual({ text: "Let me see.It is 1.", tools: [{ name: "sql", given: '{"query": "SELECT [1]"}' }] });
    // What a model writes is text, whatever it looks like.
    expect(withChunk(written, chunk("\n[sql {}]\n")).tools).toHaveLength(1);
    expect(withChunk(written, { choices: [] })).toEqual(written);
  });

  it("finds the statement that a tool was given", () => {
    expect(sqlIn('{"query": "SELECT 1"}')).toBe("SELECT 1");
    expect(sqlIn('{"sql": "SELECT 2"}')).toBe("SELECT 2");
    for (const given of ["{", "null", "[]", '{"query": 1}', '{"text": "x"}']) expect(sqlIn(given)).toBeNull();
  });

  it("is read until its end, or fails with the words of the runtime", async () => {
    const frames = [chunk("a"), chunk("\n[t {}]\n", ""), chunk("b")].map((each) => `data: ${JSON.stringify(each)}\n\n`).join("");
    expect(await answered(`: keep-alive\n\n${frames}data: [DONE]\n\ndata: {}\n\n`)).toBe("t|ab");
    await expect(answered('event: error\ndata: {"type": "error", "error": {"message": "too slow"}}\n\n')).rejects.toThrow("too slow");
  });
});
