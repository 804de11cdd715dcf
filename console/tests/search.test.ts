import { describe, expect, it } from "vitest";
import type { TableDetails } from "../src/api/types";
import { keyOf, marked, partsOf, rankingsOf, statementOf } from "../src/search/rankings";

const DETAILS: TableDetails = {
  name: "sales.Docs", kind: "dataset", status: "ready", error_message: null, description: null, sql: null, reads: [], read_by: [], definition: null,
  indexes: [
    { kind: "primary key", columns: ["id"], state: "ready" }, { kind: "lookup", columns: ["x"], state: "ready" },
    { kind: "vector", columns: ["body"], state: "ready" }, { kind: "text", columns: ["body", "ti\"tle"], state: "off" },
  ],
};

describe("rankings", () => {
  it("are one for each searched column", () => {
    expect(rankingsOf(DETAILS)).toEqual([{ kind: "vector", column: "body" }, { kind: "text", column: "body" }, { kind: "text", column: 'ti"tle' }]);
    expect(keyOf(DETAILS)).toEqual(["id"]);
  });

  it("are statements that quote what others have named", () => {
    expect(statementOf(DETAILS.name, { kind: "text", column: 'ti"tle' }, ["id"], "x = 1")).toBe(
      'SELECT id, "ti""tle", score FROM text_search(sales."Docs", $1, col => "ti""tle", limit => 100) WHERE (x = 1) ORDER BY score DESC LIMIT 100',
    );
    expect(statementOf("docs", { kind: "vector", column: "id" }, ["id"], " ", 5)).toBe(
      "SELECT id, score FROM vector_search(docs, $1, col => id, limit => 5) ORDER BY score DESC LIMIT 5",
    );
  });

  it("add to a score by the rank of the row", () => {
    const vector = { ranking: { kind: "vector" as const, column: "body" }, rows: [{ id: 2, score: 0.9 }, { id: 1, score: 0.5 }] };
    const words = { ranking: { kind: "text" as const, column: "body" }, rows: [] };
    expect(partsOf([vector, words], { id: 1 })).toEqual([
      { ranking: vector.ranking, rank: 2, score: 0.5, share: 1 / 62 }, { ranking: words.ranking, rank: null, score: null, share: 0 },
    ]);
  });
});

describe("a text", () => {
  it("is cut at the passages that matched", () => {
    const show = (text: string, ...passages: string[]) => marked(text, passages).map((each) => (each.isMatch ? `[${each.text}]` : each.text)).join("");
    expect(show("one two three", "two")).toBe("one [two] three");
    expect(show("one two three", "three", "one")).toBe("[one] two [three]");
    expect(show("abcdef", "abc", "bcd", "ab")).toBe("[abc][d]ef");
    expect(show("one", "gone", "")).toBe("one");
    expect(show("", "x")).toBe("");
  });
});
