import { describe, expect, it } from "vitest";
import { decodeLink, encodeLink } from "../src/parts/links";
import { formatBytes, formatMs, formatTime } from "../src/parts/format";
import { datasetPlace, place, readRoute } from "../src/parts/route";

describe("addresses", () => {
  it.each(["select 1", "ü → 'x' + 1", "a&b=c#d?e/f", ""])("keep the statement %j", (sql) => {
    expect(decodeLink(encodeLink(sql))).toBe(sql);
  });

  it.each(["", "q=%%", "q=!!!", "x=1"])("without a statement have none: %j", (search) => {
    expect(decodeLink(search)).toBeNull();
  });

  it("keep names of tables", () => {
    const address = place("data", "a/b", "t#1?");
    expect(readRoute(address).parts).toEqual(["data", "a/b", "t#1?"]);
    expect(readRoute("#/sql?q=a").search).toBe("q=a");
    expect(readRoute("#/%zz").parts).toEqual(["%zz"]);
    expect(readRoute(datasetPlace("s.t")).parts).toEqual(["data", "s", "t"]);
    expect(readRoute(datasetPlace("t")).parts).toEqual(["data", "public", "t"]);
  });
});

describe("figures", () => {
  it("are in units that fit", () => {
    expect([formatBytes(512), formatBytes(1536), formatBytes(5 * 2 ** 30)]).toEqual(["512 B", "1.5 KiB", "5.0 GiB"]);
    expect([formatMs(0.5), formatMs(12.3), formatMs(61_000)]).toEqual(["500 µs", "12 ms", "1 min 1 s"]);
  });

  it("of times without a zone are UTC", () => {
    expect(formatTime("2026-11-27T08:15:00.311166296").utc).toBe("2026-11-27 08:15:00 UTC");
    expect(formatTime("2026-11-27T08:15:00+02:00").utc).toBe("2026-11-27 06:15:00 UTC");
    expect(formatTime("never").local).toBe("never");
  });
});
