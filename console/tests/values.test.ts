import { Decimal, Field, Int32, makeData, RecordBatch, Schema, Struct, TimestampMicrosecond, Utf8, vectorFromArray } from "apache-arrow";
import { describe, expect, it } from "vitest";
import { filteredRows, sortedRows } from "../src/sql/ordering";
import { placeOf, type Result } from "../src/sql/results";
import { summarize } from "../src/sql/summary";
import { decimalText, shownText, textOf } from "../src/sql/values";

const text = new Field("t", new Utf8(), true);

function resultOf(...parts: { n: (number | null)[]; t: (string | null)[] }[]): Result {
  const schema = new Schema([new Field("n", new Int32(), true), text]);
  const batches = parts.map(({ n, t }) => {
    const children = [vectorFromArray(n, new Int32()).data[0]!, vectorFromArray(t, new Utf8()).data[0]!];
    return new RecordBatch(schema, makeData({ type: new Struct(schema.fields), length: n.length, children }));
  });
  const begins = batches.map((_, at) => batches.slice(0, at).reduce((sum, each) => sum + each.numRows, 0));
  const rows = batches.reduce((sum, each) => sum + each.numRows, 0);
  return { schema, batches, begins, rows, bytes: 0, isCut: false, isDone: true };
}

describe("values", () => {
  it("are shown without what changes the text around them", () => {
    expect(shownText("a\u202eb\u0000c\nd\te", text)).toBe("a\ufffdb\ufffdc↵d⇥e");
    expect(shownText("x".repeat(1_000_000), text)).toHaveLength(301);
    expect(shownText("<img src=x>", text)).toBe("<img src=x>");
  });

  it("are exact where numbers would not be", () => {
    expect(decimalText(new Uint32Array([0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff]), 2)).toBe("-0.01");
    expect(decimalText(new Uint32Array([12345, 0, 0, 0]), 2)).toBe("123.45");
    expect(decimalText(new Uint32Array([7, 0, 0, 0]), 0)).toBe("7");
    expect(textOf(9007199254740993n, new Field("n", new Int32()))).toBe("9007199254740993");
    expect(textOf(new Uint32Array([5, 0, 0, 0]), new Field("d", new Decimal(3, 38, 128)))).toBe("0.005");
  });

  it("have times of their zone", () => {
    expect(textOf(Date.UTC(2024, 0, 2, 3, 4, 5), new Field("t", new TimestampMicrosecond()))).toBe("2024-01-02 03:04:05");
    expect(textOf(Date.UTC(2024, 0, 2), new Field("t", new TimestampMicrosecond("UTC")))).toBe("2024-01-02 00:00:00Z");
  });
});

describe("rows", () => {
  const result = resultOf({ n: [3, null, 1], t: ["c", "x", null] }, { n: [2, 1], t: ["B", "a"] });

  it("are found in their batches", () => {
    expect([0, 2, 3, 4].map((row) => placeOf(result, row))).toEqual([[0, 0], [0, 2], [1, 0], [1, 1]]);
  });

  it("are sorted with nulls last, both ways", () => {
    expect([...sortedRows(result, { column: 0, isDescending: false })]).toEqual([2, 4, 3, 0, 1]);
    expect([...sortedRows(result, { column: 0, isDescending: true })]).toEqual([0, 3, 2, 4, 1]);
  });

  it("are filtered by what is shown, without case", () => {
    expect([...(filteredRows(result, "b") ?? [])]).toEqual([3]);
    expect(filteredRows(result, "  ")).toBeUndefined();
    expect([...sortedRows(result, { column: 0, isDescending: false }, filteredRows(result, "1"))]).toEqual([2, 4]);
  });

  it("are summarized", () => {
    const found = summarize(result, 0);
    expect([found.rows, found.nulls, found.distinct, found.least, found.most]).toEqual([5, 1, 3, "1", "3"]);
    expect(found.bins.reduce((a, b) => a + b)).toBe(4);
    expect(found.frequent[0]).toEqual({ text: "1", count: 2 });
  });
});
