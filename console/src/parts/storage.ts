/** What a browser keeps for this page. Some keep nothing: the page works without it. */

export type Place = "tab" | "browser";

export function readKept(place: Place, name: string): string | null {
  try {
    return storageOf(place).getItem(name);
  } catch {
    return null;
  }
}

/** Keep a text; null forgets it. */
export function keep(place: Place, name: string, text: string | null): void {
  try {
    if (text === null) storageOf(place).removeItem(name);
    else storageOf(place).setItem(name, text);
  } catch {
    // The browser keeps nothing, or no more.
  }
}

/** Forget all texts whose names begin so. */
export function removeKept(place: Place, prefix: string): void {
  try {
    const storage = storageOf(place);
    for (const name of Object.keys(storage)) if (name.startsWith(prefix)) storage.removeItem(name);
  } catch {
    // The browser keeps nothing.
  }
}

function storageOf(place: Place): Storage {
  return place === "tab" ? sessionStorage : localStorage;
}
