import { describe, expect, it } from "vitest";
import { addressOf, messageOf } from "../src/api/client";

describe("requests", () => {
  it("stay below the prefix of a proxy", () => {
    expect(addressOf("/v1/sql", "https://host/data/caraway/")).toBe("https://host/data/caraway/v1/sql");
    expect(addressOf("v1/sql", "http://127.0.0.1:8090/#/sql")).toBe("http://127.0.0.1:8090/v1/sql");
  });

  it.each([
    ["table 'x' not found", "table 'x' not found"],
    ['{"error": "no such query"}', "no such query"],
    ['{"error": {"message": "too many", "code": "x"}}', "too many"],
    ['{"message": "not accelerated"}', "not accelerated"],
    ["", "the runtime answered 500"],
    ['{"x": 1}', '{"x": 1}'],
  ])("say what failed: %j", (body, message) => {
    expect(messageOf(body, 500)).toBe(message);
  });
});
