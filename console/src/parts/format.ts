/** Numbers, sizes and times as people read them. */

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

export function formatBytes(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? value : value.toFixed(value < 10 ? 1 : 0)} ${UNITS[unit]}`;
}

export function formatNumber(value: number): string {
  return value.toLocaleString("en-US");
}

export function formatMs(ms: number): string {
  if (ms < 1) return `${(ms * 1000).toFixed(0)} µs`;
  if (ms < 1_000) return `${ms.toFixed(ms < 10 ? 1 : 0)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`;
  return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1_000)} s`;
}

/** Return how long ago something was, in the largest unit of which there are two. */
export function formatAge(ms: number): string {
  const seconds = Math.floor(ms / 1_000);
  if (seconds < 1) return "less than a second";
  for (const [unit, of] of [["day", 86_400], ["hour", 3_600], ["minute", 60]] as const) {
    if (seconds >= 2 * of) return `${formatNumber(Math.floor(seconds / of))} ${unit}s`;
  }
  return seconds === 1 ? "1 second" : `${seconds} seconds`;
}

/** Return a time in the zone of the reader, and in UTC. Times without a zone are UTC. */
export function formatTime(text: string): { local: string; utc: string } {
  const hasZone = /(Z|[+-]\d\d:?\d\d)$/.test(text);
  const date = new Date(hasZone ? text : `${text}Z`);
  if (Number.isNaN(date.getTime())) return { local: text, utc: text };
  return {
    local: date.toLocaleString(undefined, { dateStyle: "short", timeStyle: "medium" }),
    utc: `${date.toISOString().slice(0, 19).replace("T", " ")} UTC`,
  };
}
