/** The API key that requests send. It is never part of an address. */

import { keep, readKept } from "../parts/storage";

const STORED = "caraway.key";
let key: string | null = readKept("tab", STORED);
const listeners = new Set<() => void>();
let asks = false;

export function currentKey(): string | null {
  return key;
}

/** Use a key from now on. With `isKept`, a reload of this tab keeps it. */
export function useKey(value: string | null, isKept: boolean): void {
  key = value;
  asks = false;
  keep("tab", STORED, isKept ? value : null);
  notify();
}

/** Note that the runtime refused the present key, or asks for one. */
export function noteRefusal(): void {
  if (asks) return;
  asks = true;
  notify();
}

export function asksForKey(): boolean {
  return asks;
}

export function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function notify(): void {
  for (const listener of listeners) listener();
}
