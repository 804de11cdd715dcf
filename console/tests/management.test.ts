import { describe, expect, it } from "vitest";
import { at, complete, type Schema } from "../src/management/manifest_schema";
import { bodyOf, valuesOf, withTemplate } from "../src/management/monitor_values";
import { conditionOf, KIND_WORDS, reactionBodyOf, reactionValuesOf } from "../src/management/reaction_values";
import { readProblem } from "../src/management/problems";
import { allows, givenBy, REACTIONS, TEMPLATES } from "../src/management/rules";
import type { Monitor, Reaction } from "../src/management/types";

const SCHEMA: Schema = {
  type: "object",
  properties: {
    name: { type: "string" },
    runtime: { anyOf: [{ $ref: "#/$defs/Runtime" }, { type: "null" }] },
    datasets: { type: "array", items: { $ref: "#/$defs/Dataset" } },
  },
  $defs: {
    Runtime: { type: "object", properties: { output_level: { enum: ["info", "verbose"], default: "info" }, flight: { $ref: "#/$defs/Flight" } } },
    Flight: { type: "object", properties: { enabled: { type: "boolean", default: true } } },
    Dataset: {
      type: "object",
      required: ["from", "name"],
      properties: {
        from: { type: "string" }, name: { type: "string" },
        acceleration: { anyOf: [{ $ref: "#/$defs/Acceleration" }, { type: "null" }] },
        columns: { type: "array", items: { type: "object", properties: { name: {}, type: {} } } },
      },
    },
    Acceleration: { type: "object", properties: { enabled: { type: "boolean" }, mode: { anyOf: [{ enum: ["memory", "file"] }, { type: "null" }], default: null } } },
  },
};

/** Return what is offered where `|` is in a text. */
function offered(text: string): string[] | null {
  const position = text.indexOf("|");
  const found = complete(SCHEMA, text.replace("|", ""), position);
  return found?.choices.map((each) => each.apply) ?? null;
}

describe("completion of manifests", () => {
  it.each([
    ["|", ["name: ", "runtime:", "datasets:"]],
    ["name: shop\n|\ndatasets: []", ["runtime:"]],
    ["runtime:\n  |", ["output_level: ", "flight:"]],
    ["runtime:\n  output_level: |", ["info", "verbose"]],
    ["runtime:\n  output_level: ver|", ["info", "verbose"]],
    ["runtime:\n  flight:\n    enabled: |", ["true", "false"]],
    ["datasets:\n  |", ["- from: ", "- name: ", "- acceleration:", "- columns:"]],
    ["datasets:\n  - |", ["from: ", "name: ", "acceleration:", "columns:"]],
    ["datasets:\n- from: file:a\n  na|", ["name: ", "acceleration:", "columns:"]],
    ["datasets:\n- from: file:a\n  name: a\n- from: file:b\n  |", ["name: ", "acceleration:", "columns:"]],
    ["datasets:\n  - from: file:a\n    acceleration:\n      enabled: true\n      mode: |", ["memory", "file"]],
    ["datasets:\n  - from: file:a\n    acceleration:\n      # a comment\n\n      |\n      mode: file", ["enabled: "]],
    ["datasets:\n  - from: file:a\n    columns:\n      - name: x\n        |", ["type: "]],
  ])("in %j", (text, wanted) => {
    expect(offered(text)).toEqual(wanted);
  });

  it.each(["name: |", "# na|", "runtime:|", "unknown:\n  |", "datasets:\n  - from: |", "name: shop # |"])("has nothing in %j", (text) => {
    expect(offered(text)).toBeNull();
  });

  it("knows the default and what is required", () => {
    expect(complete(SCHEMA, "runtime:\n  output_level: ", 26)?.choices[0]?.detail).toBe("default");
    expect(complete(SCHEMA, "datasets:\n  - ", 14)?.choices[0]?.detail).toBe("string (required)");
    expect(at(SCHEMA, ["datasets", "[]", "acceleration", "mode"]).map((each) => each.enum)).toEqual([["memory", "file"], undefined]);
  });
});

describe("messages of the validator", () => {
  it("are at their lines", () => {
    expect(readProblem("line 4: datasets[0].name: is missing")).toEqual({ line: 4, message: "datasets[0].name: is missing" });
    expect(readProblem("and 3 more problems")).toEqual({ line: null, message: "and 3 more problems" });
  });
});

describe("roles", () => {
  it("may do what the service lets them do", () => {
    expect(allows("viewer", "apps:read")).toBe(true);
    expect(allows("viewer", "apps:write")).toBe(false);
    expect(allows("member", "monitors:write")).toBe(false);
    expect(allows("admin", "members:write")).toBe(true);
    expect(allows("stranger", "apps:read")).toBe(false);
  });

  it("give no higher role than their own", () => {
    expect(givenBy("admin")).toEqual(["viewer", "member", "admin"]);
    expect(givenBy("owner")).toContain("owner");
    expect(givenBy("stranger")).toEqual([]);
  });
});

describe("monitors", () => {
  const present: Monitor = {
    id: "a", name: "slow", template: "query_latency_p99", enabled: true, state: "ok", since: null, evaluation_unavailable_reason: null, revision: 3,
    spec: { op: "GT", threshold: 250, window: "5m", sustainSecs: 300, severity: "warn", includeDetails: true },
    targets: { email: { emails: [], recipientUserIds: [7] }, http: { url: "https://a.example", method: "PUT", has_token: true, disabled_reason: null } },
  };

  it("are sent without targets that did not change, which keeps their tokens", () => {
    const body = bodyOf({ ...valuesOf(present), threshold: "500" }, present);
    expect(body.spec.threshold).toBe(500);
    expect(body).not.toHaveProperty("targets");
  });

  it("keep the targets that the form does not show", () => {
    const body = bodyOf({ ...valuesOf(present), emails: "a@example.com, b@example.com" }, present);
    expect(body.targets).toEqual({ http: { url: "https://a.example", method: "PUT" }, email: { emails: ["a@example.com", "b@example.com"], recipientUserIds: [7] } });
  });

  it("take the condition of their template", () => {
    const values = withTemplate({ ...valuesOf(null), threshold: "9" }, "dataset_status");
    expect([values.op, values.threshold]).toEqual(["EQ", "3"]);
    expect(withTemplate(values, "instance_health")).toMatchObject({ op: TEMPLATES.instance_health?.op, threshold: "" });
    expect(bodyOf({ ...values, name: "x", datasets: "orders,", url: "https://a.example" }, null).spec).toMatchObject({ datasets: ["orders"], threshold: 3 });
  });
});

describe("reactions", () => {
  const present: Reaction = {
    id: "r", name: "unpaid", kind: "dataset_row_match", enabled: true, state: "ok", since: null, evaluation_unavailable_reason: null, revision: 2,
    spec: { dataset: "orders", where: "paid = 'no'", minRows: 3, sustainSecs: 60, severity: "critical", includeDetails: false },
    targets: { http: { url: "https://a.example", has_token: true, disabled_reason: null } },
  };

  it("have words for each kind", () => {
    expect(REACTIONS.map((each) => each.kind)).toEqual(Object.keys(KIND_WORDS));
  });

  it("send the fields that their kind takes, and never another kind", () => {
    const values = { ...reactionValuesOf(present), where: "paid IS NULL", thresholdMs: "5", query: "SELECT 1" };
    expect(reactionBodyOf(values, present)).toEqual({ name: "unpaid", spec: { dataset: "orders", where: "paid IS NULL", minRows: 3, sustainSecs: 60, severity: "critical" } });
  });

  it.each([
    ["task_history_error", { tasks: ["sql_query", "ai"] }],
    ["task_history_slow", { tasks: ["sql_query", "ai"], thresholdMs: 5 }],
    ["dataset_query", { query: "SELECT 1", minRows: 1, sustainSecs: 0 }],
  ])("of the kind %s are added with its fields", (kind, spec) => {
    const values = { ...reactionValuesOf(null), name: "x", kind, tasks: "sql_query, ai", thresholdMs: "5", query: "SELECT 1", emails: "a@example.com" };
    expect(reactionBodyOf(values, null)).toEqual({ name: "x", kind, spec: { ...spec, severity: "warn" }, targets: { email: { emails: ["a@example.com"], recipientUserIds: [] } } });
  });

  it("say when they fire", () => {
    expect(conditionOf(present)).toBe("3 rows of orders with paid = 'no' for 60 s");
    expect(conditionOf({ ...present, kind: "dataset_query", spec: { ...present.spec, query: `SELECT\n${"x".repeat(99)}`, minRows: 1, sustainSecs: 0 } })).toBe(`a row from SELECT ${"x".repeat(73)}…`);
    expect(conditionOf({ ...present, kind: "task_history_slow", spec: { tasks: ["ai"], thresholdMs: 5, severity: "warn", includeDetails: true } })).toBe("a task is slow (ai): 5 ms or more");
  });
});
