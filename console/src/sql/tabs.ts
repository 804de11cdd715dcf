/** The tabs of the editor, which survive a reload, and the statements that were run. */

import { useSyncExternalStore } from "react";
import { keep, readKept } from "../parts/storage";

export interface Tab {
  id: string;
  title: string;
  text: string;
}
interface Stored {
  tabs: Tab[];
  active: string;
}
export interface Ran {
  sql: string;
  at: string;
  ms: number;
  rows: number | null;
  error: string | null;
}

const TABS = "caraway.tabs";
const HISTORY = "caraway.history";
const MOST_HISTORY = 200;
const MOST_KEPT = 20_000;
const listeners = new Set<() => void>();
let tabs = loadTabs();
let history = loaded<Ran[]>(HISTORY, []);

function loaded<T>(name: string, otherwise: T): T {
  try {
    return (JSON.parse(readKept("browser", name) ?? "null") as T | null) ?? otherwise;
  } catch {
    return otherwise;
  }
}

function loadTabs(): Stored {
  const found = loaded<Stored | null>(TABS, null);
  if (found && Array.isArray(found.tabs) && found.tabs.length > 0) return found;
  const first = newTab("SHOW TABLES", 1);
  return { tabs: [first], active: first.id };
}

function newTab(text: string, number: number): Tab {
  return { id: crypto.randomUUID?.() ?? String(Math.random()), title: `Query ${number}`, text };
}

function keepAndShow(name: string, value: unknown): void {
  keep("browser", name, JSON.stringify(value));
  for (const listener of listeners) listener();
}

function change(next: Stored): void {
  tabs = next;
  keepAndShow(TABS, tabs);
}

export function openTab(text = ""): void {
  const numbers = tabs.tabs.map((tab) => Number(/^Query (\d+)$/.exec(tab.title)?.[1] ?? 0));
  const tab = newTab(text, Math.max(0, ...numbers) + 1);
  change({ tabs: [...tabs.tabs, tab], active: tab.id });
}

export function closeTab(id: string): void {
  const rest = tabs.tabs.filter((tab) => tab.id !== id);
  const left = rest.length > 0 ? rest : [newTab("", 1)];
  const active = left.some((tab) => tab.id === tabs.active) ? tabs.active : (left[0] as Tab).id;
  change({ tabs: left, active });
}

export function chooseTab(id: string): void {
  change({ ...tabs, active: id });
}

export function writeTab(id: string, text: string): void {
  change({ ...tabs, tabs: tabs.tabs.map((tab) => (tab.id === id ? { ...tab, text } : tab)) });
}

export function renameTab(id: string, title: string): void {
  change({ ...tabs, tabs: tabs.tabs.map((tab) => (tab.id === id ? { ...tab, title } : tab)) });
}

export function noteRun(ran: Ran): void {
  history = [{ ...ran, sql: ran.sql.slice(0, MOST_KEPT) }, ...history].slice(0, MOST_HISTORY);
  keepAndShow(HISTORY, history);
}

export function clearHistory(): void {
  history = [];
  keepAndShow(HISTORY, history);
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function useTabs(): Stored {
  return useSyncExternalStore(subscribe, () => tabs);
}

export function useHistory(): Ran[] {
  return useSyncExternalStore(subscribe, () => history);
}
