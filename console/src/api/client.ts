/** Requests to the runtime that served this page. */

import { currentKey, noteAccess, noteRefusal } from "./key";

export const ARROW = "application/vnd.apache.arrow.stream";

/** What a request failed with: the words of the runtime, and its status (0: no response). */
export class RequestError extends Error {
  constructor(
    message: string,
    readonly status: number,
    readonly retryAfterS: number | null = null,
    /** What was sent for each field that is wrong. */
    readonly problems: string[] = [],
  ) {
    super(message);
    this.name = "RequestError";
  }
}

export interface RequestOptions {
  method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
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

let credentials = (): Record<string, string> => {
  const key = currentKey();
  return key === null ? {} : { "x-api-key": key };
};

/** Send other headers with each request than the API key. */
export function useCredentials(headers: () => Record<string, string>): void {
  credentials = headers;
}

/** Send a request, and return the response if it succeeded. */
export async function send(path: string, options: RequestOptions = {}): Promise<Response> {
  const headers: Record<string, string> = {
    accept: options.accept ?? "application/json",
    ...credentials(),
  };
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
  noteAccess(response.headers.get("x-key-access"));
  if (response.ok) return response;
  if (response.status === 401) noteRefusal();
  const retryAfter = Number(response.headers.get("retry-after"));
  const text = await response.text();
  throw new RequestError(
    messageOf(text, response.status),
    response.status,
    retryAfter > 0 ? retryAfter : null,
    problemsOf(text),
  );
}

/** Return the JSON of a response. */
export async function fetchJson<T>(path: string, options: RequestOptions = {}): Promise<T> {
  return (await (await send(path, options)).json()) as T;
}

/** Return the rows of a short statement as objects. */
export async function selectRows<T>(sql: string, signal?: AbortSignal, headers?: Record<string, string>): Promise<T[]> {
  return fetchJson<T[]>("v1/sql", { body: sql, signal, headers });
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

/** Return all problems of the fields of a request, as the management API lists them. */
export function problemsOf(body: string): string[] {
  try {
    const found = JSON.parse(body) as { details?: { fieldErrors?: Record<string, string[]> } };
    return Object.values(found.details?.fieldErrors ?? {}).flat();
  } catch {
    return [];
  }
}

function textIn(value: unknown): string | null {
  if (typeof value === "string") return value;
  if (typeof value !== "object" || value === null) return null;
  const { error, message } = value as { error?: unknown; message?: unknown };
  return textIn(error) ?? textIn(message);
}
