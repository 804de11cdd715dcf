/** Values of columns as texts. What a cell holds is never markup. */

import { DataType, TimeUnit, type Field } from "apache-arrow";

const MOST_SHOWN = 300;
const PER_UNIT = {
  [TimeUnit.SECOND]: 1_000, [TimeUnit.MILLISECOND]: 1, [TimeUnit.MICROSECOND]: 1 / 1_000, [TimeUnit.NANOSECOND]: 1 / 1_000_000,
};

/** Return a value as copies and exports have it; null is the empty text. */
export function textOf(value: unknown, field: Field): string {
  if (value === null || value === undefined) return "";
  const type = field.type;
  if (DataType.isTimestamp(type)) return timestampText(Number(value), type.timezone);
  if (DataType.isDate(type)) return new Date(Number(value)).toISOString().slice(0, 10);
  if (DataType.isTime(type)) return timeText(Number(value), type.unit);
  if (DataType.isDecimal(type)) return decimalText(value as Uint32Array, type.scale);
  if (value instanceof Uint8Array) return hexText(value);
  if (typeof value === "object") return JSON.stringify(value, plain) ?? "";
  return String(value);
}

/** Return a value as a cell shows it: in one line, with characters that can be seen, and not too long. */
export function shownText(value: unknown, field: Field): string {
  const text = textOf(value, field);
  const cut = text.length > MOST_SHOWN ? `${text.slice(0, MOST_SHOWN)}…` : text;
  // Control characters and marks of direction would change what is around them.
  return cut.replace(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, (found) =>
    found === "\n" ? "↵" : found === "\t" ? "⇥" : "\ufffd",
  );
}

/** Return a number for sorting, charts and histograms; null if the value has none. */
export function numberOf(value: unknown, field: Field): number | null {
  if (value === null || value === undefined) return null;
  if (DataType.isDecimal(field.type)) return Number(textOf(value, field));
  if (typeof value === "boolean") return value ? 1 : 0;
  if (typeof value === "number") return value;
  if (typeof value === "bigint") return Number(value);
  return null;
}

export function isNumeric(field: Field): boolean {
  const type = field.type;
  return DataType.isInt(type) || DataType.isFloat(type) || DataType.isDecimal(type);
}

export function isTemporal(field: Field): boolean {
  return DataType.isTimestamp(field.type) || DataType.isDate(field.type);
}

export function typeName(field: Field): string {
  return String(field.type).replace("<", " ").replace(">", "").replace(/^Utf8(View)?$|^LargeUtf8$/, "text").toLowerCase();
}

function timestampText(ms: number, zone: string | null | undefined): string {
  const date = new Date(ms);
  if (Number.isNaN(date.getTime())) return String(ms);
  return date.toISOString().replace("T", " ").replace(/\.?0*Z$/, "") + (zone ? "Z" : "");
}

function timeText(value: number, unit: TimeUnit): string {
  return new Date(value * PER_UNIT[unit]).toISOString().slice(11, 23).replace(/\.?0*$/, "");
}

/** Return a decimal exactly: its words are a number in two's complement, the lowest first. */
export function decimalText(words: Uint32Array, scale: number): string {
  let value = 0n;
  for (let at = words.length - 1; at >= 0; at -= 1) value = (value << 32n) | BigInt(words[at] ?? 0);
  const bits = BigInt(words.length * 32);
  if (value >> (bits - 1n)) value -= 1n << bits;
  const isNegative = value < 0n;
  const digits = (isNegative ? -value : value).toString().padStart(scale + 1, "0");
  const whole = scale > 0 ? digits.slice(0, -scale) : digits;
  const part = scale > 0 ? `.${digits.slice(-scale)}` : "";
  return `${isNegative ? "-" : ""}${whole}${part}`;
}

function hexText(bytes: Uint8Array): string {
  return Array.from(bytes.subarray(0, 4096), (each) => each.toString(16).padStart(2, "0")).join("");
}

function plain(_: string, value: unknown): unknown {
  if (typeof value === "bigint") return value.toString();
  if (value instanceof Uint8Array) return hexText(value);
  return value;
}
