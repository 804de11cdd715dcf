/** Statements in addresses, so that a colleague can open them. */

export function encodeLink(sql: string): string {
  const bytes = new TextEncoder().encode(sql);
  const text = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
  return `q=${text.replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "")}`;
}

/** Return the statement of a query string; null if it has none that can be read. */
export function decodeLink(search: string): string | null {
  const text = new URLSearchParams(search).get("q");
  if (text === null) return null;
  try {
    const bytes = Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (each) => each.charCodeAt(0));
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return null;
  }
}
