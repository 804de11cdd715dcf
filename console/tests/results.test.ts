import { RecordBatch, RecordBatchStreamWriter, Struct, Field, Int32, Schema, makeData, vectorFromArray } from "apache-arrow";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { isNear, readResult, type Result } from "../src/sql/results";

const SCHEMA = new Schema([new Field("n", new Int32(), true)]);

function encoded(batches: number, rows: number): Uint8Array<ArrayBuffer> {
  const parts = Array.from({ length: batches }, () => {
    const data = vectorFromArray(Array.from({ length: rows }, (_, at) => at), new Int32()).data[0]!;
    return new RecordBatch(SCHEMA, makeData({ type: new Struct(SCHEMA.fields), length: rows, children: [data] }));
  });
  return new Uint8Array(RecordBatchStreamWriter.writeAll(parts).toUint8Array(true));
}

let frames = 0;
let answer: () => Response;

beforeEach(() => {
  frames = 0;
  vi.stubGlobal("location", { hostname: "localhost" });
  vi.stubGlobal("document", { baseURI: "http://runtime.test/" });
  vi.stubGlobal("fetch", async () => answer());
  vi.stubGlobal("requestAnimationFrame", (draw: () => void) => {
    frames += 1;
    return setTimeout(draw);
  });
});
afterEach(() => vi.unstubAllGlobals());

describe("hosts", () => {
  it.each([["localhost", true], ["127.0.0.1", true], ["127.8.0.1", true], ["[::1]", true], ["127.0.0.1.example.org", false], ["example.org", false], ["10.0.0.1", false], ["", false]])(
    "are this machine or not: %j", (host, near) => expect(isNear(host)).toBe(near),
  );
});

describe("rows that arrive", () => {
  it("are shown after the first batch, before the others are read", async () => {
    const bytes = encoded(4, 10);
    let cut = 0;
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        const part = bytes.slice(cut, (cut += 64));
        if (part.length > 0) controller.enqueue(part);
        else controller.close();
      },
    });
    answer = () => new Response(body);
    const seen: number[] = [];
    let atFirst = 0;
    for await (const result of readResult({ sql: "", signal: new AbortController().signal })) {
      seen.push(result.rows);
      if (result.rows === 10) atFirst = frames;
    }
    expect(seen.slice(0, 2)).toEqual([0, 10]);
    expect(seen.at(-1)).toBe(40);
    // The frame is waited for once these rows were given out.
    expect([atFirst, frames]).toEqual([0, 1]);
  });

  it("let other work run between slices", async () => {
    answer = () => new Response(encoded(300, 1_000));
    let now = 0;
    vi.spyOn(performance, "now").mockImplementation(() => (now += 5));
    let turns = 0;
    const work = setInterval(() => { turns += 1; });
    let last: Result | null = null;
    for await (const result of readResult({ sql: "", signal: new AbortController().signal })) last = result;
    clearInterval(work);
    expect(last?.rows).toBe(300_000);
    expect(turns).toBeGreaterThan(30);
    vi.restoreAllMocks();
  });

  it("are no result if the body breaks where Arrow could end", async () => {
    const bytes = encoded(3, 50);
    let isSent = false;
    answer = () => new Response(new ReadableStream<Uint8Array>({
      pull(controller) {
        if (isSent) controller.error(new TypeError("network error"));
        else controller.enqueue(bytes.slice(0, bytes.length - 8));
        isSent = true;
      },
    }));
    const reading = (async () => {
      for await (const result of readResult({ sql: "", signal: new AbortController().signal })) expect(result.isDone).toBe(false);
    })();
    await expect(reading).rejects.toThrow("network error");
  });

  it("are drawn in a page that draws no frames", async () => {
    vi.stubGlobal("requestAnimationFrame", () => 0);
    answer = () => new Response(encoded(2, 5));
    let last: Result | null = null;
    for await (const result of readResult({ sql: "", signal: new AbortController().signal })) last = result;
    expect(last).toMatchObject({ rows: 10, isDone: true, isCut: false });
  });
});
