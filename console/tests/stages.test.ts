import { describe, expect, it } from "vitest";
import { readEvents, splitEvents } from "../src/api/events";
import type { Stage } from "../src/api/types";
import { withoutParts } from "../src/pages/finished";
import { placeSpans, type Span } from "../src/pages/trace";
import { placePlan } from "../src/sql/plan";
import { newTrace, planOf, traceHeader } from "../src/sql/stages";

function stage(name: string, reads: string[], more: Partial<Stage> = {}): Stage {
  return {
    name, note: `rows of ${name}`, state: "running", reads, tables: [], tasks_done: 1, tasks_total: 4, rows: 10, bytes: 80,
    began_at_ms: null, ended_at_ms: null, executors: [], ...more,
  };
}

describe("events", () => {
  it("are read across the parts in which they arrive", () => {
    const first = splitEvents(": keep-alive\n\nevent: stages\ndata: {\"a\"");
    expect(first.events).toEqual([]);
    const second = splitEvents(`${first.rest}:1}\n\nevent: end\r\ndata: x\r\ndata: y\r\n\r\n`);
    expect(second).toEqual({ events: [{ name: "stages", data: '{"a":1}' }, { name: "end", data: "x\ny" }], rest: "" });
  });

  it("come from a response, whose characters may be cut", async () => {
    const bytes = new TextEncoder().encode("data: é☃\n\n");
    const body = new ReadableStream({
      start(controller) {
        for (const byte of bytes) controller.enqueue(Uint8Array.of(byte));
        controller.close();
      },
    });
    const found = [];
    for await (const event of readEvents(new Response(body))) found.push(event);
    expect(found).toEqual([{ name: "message", data: "é☃" }]);
  });
});

describe("stages", () => {
  it("are a graph whose root is the last one, and each is drawn once", () => {
    const shared = [stage("a", []), stage("b", ["a"]), stage("c", ["a"]), stage("root", ["b", "c"], { state: "waiting" })];
    const roots = planOf(shared);
    expect(roots.map((each) => each.name)).toEqual(["rows of root"]);
    expect(placePlan(roots).placed.map(({ node }) => node.detail)).toEqual(["root", "b", "a", "c"]);
    expect(roots[0]?.summary).toBe("waits");
  });

  it("say what is done, where, and how long it took", () => {
    const [node] = planOf([
      stage("s", [], {
        tables: ["orders"], began_at_ms: 1_000, ended_at_ms: 3_000, rows: 12_345,
        executors: [{ executor_id: "e1", tasks: 1, rows: 5, bytes: 2_048, elapsed_ms: 12 }, { executor_id: null, tasks: 0, rows: 0, bytes: 0, elapsed_ms: 0 }],
      }),
    ]);
    expect(node).toMatchObject({ share: 0.25, state: "running", detail: "s, reads orders", summary: "1 of 4 · 12,345 rows" });
    expect(Object.fromEntries(node?.metrics ?? [])).toMatchObject({ time: "2.0 s", e1: "1 tasks, 5 rows, 2.0 KiB, 12 ms", scheduler: "0 tasks, 0 rows, 0 B, 0 µs" });
  });

  it("end nowhere in a circle", () => {
    expect(planOf([stage("a", ["b"]), stage("b", ["a"]), stage("c", ["a"])]).length).toBe(1);
    expect(planOf([stage("a", ["gone"])])[0]?.children).toEqual([]);
  });

  it("are asked for by a trace that the statement was sent with", () => {
    const trace = newTrace();
    expect(trace).toMatch(/^[0-9a-f]{32}$/);
    expect(newTrace()).not.toBe(trace);
    expect(traceHeader(trace).traceparent).toMatch(new RegExp(`^00-${trace}-[0-9a-f]{16}-01$`));
  });
});

function span(id: string, parent: string | null, start: string, ms: number): Span {
  return { span_id: id, parent_span_id: parent, task: "t", input: "", start_time: start, execution_duration_ms: ms, error_message: null, node_id: "n", rows_produced: null };
}

describe("a trace", () => {
  it("is a tree on one line of time", () => {
    const roots = placeSpans([
      span("a", "a client's", "2026-01-01T00:00:00.000Z", 100), span("b", "a", "2026-01-01T00:00:00.050Z", 50), span("c", "b", "2026-01-01T00:00:00.090Z", 0),
    ]);
    expect(roots.map((each) => each.span.span_id)).toEqual(["a"]);
    const b = roots[0]?.children[0];
    expect([b?.left, b?.width]).toEqual([50, 50]);
    expect(b?.children[0]).toMatchObject({ left: 90, width: 0.5 });
  });

  it("of a list of tasks keeps those that are no part of another one", () => {
    const tasks = [span("a", null, "", 1), span("b", "a", "", 1), span("c", "sent by a client", "", 1)];
    expect(withoutParts(tasks).map((each) => each.span_id)).toEqual(["a", "c"]);
  });
});
