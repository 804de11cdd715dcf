/** The place that the part of the address behind `#` names: it needs nothing of a server or a proxy. */

import { useMemo, useSyncExternalStore } from "react";

export interface Route {
  parts: string[];
  search: string;
}

export function readRoute(hash: string): Route {
  const text = hash.replace(/^#?\/?/, "");
  const cut = text.indexOf("?");
  const path = cut < 0 ? text : text.slice(0, cut);
  return {
    parts: path.split("/").filter(Boolean).map(decoded),
    search: cut < 0 ? "" : text.slice(cut + 1),
  };
}

/** Return the address of a place, with each part as it may be in one. */
export function place(...parts: string[]): string {
  return `#/${parts.map(encodeURIComponent).join("/")}`;
}

/** Return the place of a dataset, whose name may have a schema. */
export function datasetPlace(name: string): string {
  const cut = name.indexOf(".");
  return cut < 0 ? place("data", "public", name) : place("data", name.slice(0, cut), name.slice(cut + 1));
}

export function go(address: string, replaces = false): void {
  if (replaces) history.replaceState(null, "", address);
  else history.pushState(null, "", address);
  window.dispatchEvent(new HashChangeEvent("hashchange"));
}

export function useRoute(): Route {
  const hash = useSyncExternalStore(subscribe, () => location.hash);
  return useMemo(() => readRoute(hash), [hash]);
}

function subscribe(listener: () => void): () => void {
  window.addEventListener("hashchange", listener);
  window.addEventListener("popstate", listener);
  return () => {
    window.removeEventListener("hashchange", listener);
    window.removeEventListener("popstate", listener);
  };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
