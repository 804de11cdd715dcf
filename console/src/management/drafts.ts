/** Texts that are not saved yet. A tab keeps them over a new sign-in and a reload. */

import { keep, readKept, removeKept } from "../parts/storage";

const PREFIX = "caraway.draft.";

export interface Draft {
  /** The revision that the text was made from. */
  revision: number;
  text: string;
}

export function readDraft(project: number): Draft | null {
  try {
    const found = JSON.parse(readKept("tab", PREFIX + project) ?? "null") as Draft | null;
    return typeof found?.revision === "number" && typeof found.text === "string" ? found : null;
  } catch {
    return null;
  }
}

export function keepDraft(project: number, draft: Draft | null): void {
  keep("tab", PREFIX + project, draft === null ? null : JSON.stringify(draft));
}

/** Forget all texts: who signs out leaves nothing behind. */
export function forgetDrafts(): void {
  removeKept("tab", PREFIX);
}
