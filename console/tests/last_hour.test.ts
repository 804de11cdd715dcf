import { describe, expect, it } from "vitest";
import { linesOf } from "../src/pages/last_hour";
import { pathOf } from "../src/parts/line_chart";

const FOUND = {
  every_s: 15, schedulers: 1, engine_ends: {}, engine_refusals: {},
  columns: { at_ms: [0, 15_000], statements: [30, 0], busy_ms: [60, 0], memory_bytes: [8, 16], memory_used_bytes: [4, null] },
};

describe("the last hour", () => {
  it("has rates of counts, and means of times where there were statements", () => {
    const lines = Object.fromEntries(linesOf(FOUND).map((each) => [each.title, each]));
    expect(lines.Statements?.values).toEqual([2, 0]);
    expect(lines["Time of a statement"]?.values).toEqual([2, null]);
    expect(lines["Memory of executors"]).toMatchObject({ values: [4, null], most: 16 });
    expect(lines.Running?.values).toEqual([]);
  });

  it("is drawn with gaps, up to the largest value", () => {
    expect(pathOf([0, 5, 10, 15], [0, 10, null, 5], 10)).toBe("M0.0,70.0L100.0,0.0M300.0,35.0");
    expect(pathOf([0, 10], [0, 0], 0)).toBe("M0.0,70.0L300.0,70.0");
    expect(pathOf([], [], 1)).toBe("");
  });
});
