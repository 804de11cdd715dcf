import { describe, expect, it } from "vitest";
import { binned } from "../src/sql/summary";
import { parsePlan, placePlan } from "../src/sql/plan";
import { placeIn, semicolons, statementAt } from "../src/sql/statements";

describe("statements", () => {
  it.each([
    ["select 1; select 2", 3, "select 1", 0],
    ["select 1; select 2", 12, "select 2", 10],
    ["select 1;", 9, "select 1", 0],
    ["select ';'; select 2", 9, "select ';'", 0],
    ['select ";"; x', 4, 'select ";"', 0],
    ["-- a; b\nselect 1", 10, "-- a; b\nselect 1", 0],
    ["/* ; */ select 1; x", 12, "/* ; */ select 1", 0],
    ["select $$;$$; x", 3, "select $$;$$", 0],
    ["  select 1  ", 0, "select 1", 2],
    ["", 0, "", 0],
    ["select 'open; select 2", 20, "select 'open; select 2", 0],
  ])("finds the one at a place of %j", (text, at, statement, begin) => {
    expect(statementAt(text, at)).toEqual({ text: statement, begin });
  });

  it("finds semicolons outside of texts only", () => {
    expect(semicolons("a'';b;''';'")).toEqual([3, 5]);
  });

  it("finds the place that an error names", () => {
    expect(placeIn("syntax error at Line: 2, Column: 3", "a\nb cd", 10)).toEqual({ from: 14, to: 16 });
    expect(placeIn("table 'nothing' not found", "select * from Nothing", 5)).toEqual({ from: 19, to: 26 });
    expect(placeIn("the engine is busy", "select 1", 0)).toBeNull();
  });
});

describe("plans", () => {
  const text = [
    "SortExec: expr=[a, b], metrics=[output_rows=3, elapsed_compute=1.2ms]",
    "  HashJoinExec: on=[(x, y)]",
    "    DataSourceExec: files",
    "    DataSourceExec",
    "",
  ].join("\n");

  it("are trees by their indents", () => {
    const [root] = parsePlan(text);
    expect(root?.name).toBe("SortExec");
    expect(root?.detail).toBe("expr=[a, b]");
    expect(root?.metrics).toEqual([["output_rows", "3"], ["elapsed_compute", "1.2ms"]]);
    expect(root?.children[0]?.children.map((each) => each.detail)).toEqual(["files", ""]);
  });

  it("are placed without an overlap", () => {
    const { placed, columns, levels } = placePlan(parsePlan(text));
    expect([columns, levels]).toEqual([2, 3]);
    expect(new Set(placed.map((each) => `${each.x},${each.y}`)).size).toBe(placed.length);
    expect(placed[0]?.x).toBe(0.5);
  });
});

describe("histograms", () => {
  it("count every number once", () => {
    expect(binned([0, 1, 2, NaN, Infinity]).reduce((a, b) => a + b)).toBe(3);
    expect(binned([5, 5])).toEqual([]);
    expect(binned([])).toEqual([]);
  });
});
