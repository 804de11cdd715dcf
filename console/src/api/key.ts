/** The API key that requests send. It is never part of an address. */

import { useSyncExternalStore } from "react";
import { keep, readKept } from "../parts/storage";

const STORED = "caraway.key";
let key: string | null = readKept("tab", STORED);
const listeners = new Set<() => void>();
let asks = false;
let access: string | null = null;

export function currentKey(): string | null {
  return key;
}

/** Use a key from now on. With `isKept`, a reload of this tab keeps it. */
export function useKey(value: string | null, isKept: boolean): void {
  key = value;
  asks = false;
  access = null;
  keep("tab", STORED, isKept ? value : null);
  notify();
}

/** Note that the runtime refused the present key, or asks for one. */
export function noteRefusal(): void {
  if (asks) return;
  asks = true;
  notify();
}

/** Note the access of the key, as a response says it. */
export function noteAccess(said: string | null): void {
  if (said === null || said === access) return;
  access = said;
  notify();
}

/** Return whether the key may write, cancel and refresh; true as long as nothing says otherwise. */
export function useMayWrite(): boolean {
  return useSyncExternalStore(subscribe, () => access !== "ro");
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
