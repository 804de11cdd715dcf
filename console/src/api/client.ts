/** Requests to the runtime that served this page. */

import { currentKey, noteRefusal } from "./key";

export const ARROW = "application/vnd.apache.arrow.stream";

/** What a request failed with: the words of the runtime, and its status (0: no response). */
export class RequestError extends Error {
  constructor(
    message: string,
    readonly status: number,
    readonly retryAfterS: number | null = null,
  ) {
    super(message);
    this.name = "RequestError";
  }
}

export interface RequestOptions {
  method?: "GET" | "POST" | "PATCH" | "DELETE";
  body?: string;
  json?: unknown;
  accept?: string;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

/** Return the address of a path of the API, below the prefix that the page was loaded from. */
export function addressOf(path: string, base: string = document.baseURI): string {
  return new URL(path.replace(/^\//, ""), base).toString();
}

/** Send a request, and return the response if it succeeded. */
export async function send(path: string, options: RequestOptions = {}): Promise<Response> {
  const headers: Record<string, string> = { accept: options.accept ?? "application/json" };
  const key = currentKey();
  if (key !== null) headers["x-api-key"] = key;
  let body = options.body;
  if (options.json !== undefined) {
    headers["content-type"] = "application/json";
    body = JSON.stringify(options.json);
  }
  let response: Response;
  try {
    response = await fetch(addressOf(path), {
      method: options.method ?? (body === undefined ? "GET" : "POST"),
      body,
      headers: { ...headers, ...options.headers },
      signal: options.signal,
      cache: "no-store",
    });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new RequestError("the runtime does not respond", 0);
  }
  if (response.ok) return response;
  if (response.status === 401) noteRefusal();
  const retryAfter = Number(response.headers.get("retry-after"));
  throw new RequestError(
    messageOf(await response.text(), response.status),
    response.status,
    retryAfter > 0 ? retryAfter : null,
  );
}

/** Return the JSON of a response. */
export async function fetchJson<T>(path: string, options: RequestOptions = {}): Promise<T> {
  return (await (await send(path, options)).json()) as T;
}

/** Return the rows of a short statement as objects. */
export async function selectRows<T>(sql: string, signal?: AbortSignal): Promise<T[]> {
  return fetchJson<T[]>("v1/sql", { body: sql, signal });
}

/** Return what a body of an error says: all families of errors, and text. */
export function messageOf(body: string, status: number): string {
  const text = body.trim();
  if (text === "") return `the runtime answered ${status}`;
  try {
    const found: unknown = JSON.parse(text);
    return textIn(found) ?? text;
  } catch {
    return text;
  }
}

function textIn(value: unknown): string | null {
  if (typeof value === "string") return value;
  if (typeof value !== "object" || value === null) return null;
  const { error, message } = value as { error?: unknown; message?: unknown };
  return textIn(error) ?? textIn(message);
}
