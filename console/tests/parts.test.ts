import { describe, expect, it } from "vitest";
import { decodeLink, encodeLink } from "../src/parts/links";
import { farthestBehind, lagWords } from "../src/data/lag";
import { formatAge, formatBytes, formatMs, formatTime } from "../src/parts/format";
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

  it.each([
    [0, "less than a second"], [1_000, "1 second"], [119_000, "119 seconds"], [120_000, "2 minutes"], [7_199_000, "119 minutes"],
    [7_200_000, "2 hours"], [172_800_000, "2 days"], [4e11, "4,629 days"],
  ])("of ages are words: %i", (ms, words) => {
    expect(formatAge(ms)).toBe(words);
  });

  it("of lags are words", () => {
    expect([null, 0, 90_000].map((behind_ms) => lagWords({ behind_ms }))).toEqual(["not known here", "up to date with its source", "90 seconds behind its source"]);
  });

  it("of lags name the dataset that is farthest behind", () => {
    const of = (name: string, behind_ms: number | null) => ({ from: "", name, replication_enabled: false, acceleration_enabled: true, status: "ready" as const, lag: behind_ms === -1 ? null : { behind_ms, last_change_at: "2026-11-27T08:15:00Z", is_late: false } });
    expect(farthestBehind([of("a", null), of("b", 5), of("c", 7), of("d", -1)])?.name).toBe("c");
    expect(farthestBehind([of("a", null)])).toBeUndefined();
  });

  it("of times without a zone are UTC", () => {
    expect(formatTime("2026-11-27T08:15:00.311166296").utc).toBe("2026-11-27 08:15:00 UTC");
    expect(formatTime("2026-11-27T08:15:00+02:00").utc).toBe("2026-11-27 06:15:00 UTC");
    expect(formatTime("never").local).toBe("never");
  });
});
