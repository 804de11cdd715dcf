/** Pages that nobody uses ask less: an open console must not cost the service what work does. */

import { focusManager, type QueryClient } from "@tanstack/react-query";

/** After this time without a key or a pointer, a page is idle. */
const IDLE_MS = 60_000;
/** How often an idle page asks, whatever it asks for. A hidden one asks nothing. */
const IDLE_EVERY_MS = 30_000;
const SIGNS = ["pointerdown", "pointermove", "keydown", "wheel", "touchstart"];

let isIdle = false;

/** Return whether failed questions of the page may be asked once more: an idle page shows the failure at once. */
export function mayTryAgain(): boolean {
  return !isIdle;
}

/** Ask less for what pages ask for again and again, while the page is idle. */
export function askLessWhenIdle(client: QueryClient): void {
  let usedAt = Date.now();
  const askAgain = (): void =>
    void client.refetchQueries({ type: "active", predicate: (query) => query.observers.some((each) => Boolean(each.options.refetchInterval)) });
  const use = (): void => {
    usedAt = Date.now();
    if (!isIdle) return;
    isIdle = false;
    focusManager.setFocused(undefined);
    askAgain();
  };
  for (const sign of SIGNS) window.addEventListener(sign, use, { capture: true, passive: true });
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "visible") {
      use();
      askAgain();
    }
  });
  setInterval(() => {
    if (document.visibilityState === "hidden") return;
    if (isIdle) askAgain();
    else if (Date.now() - usedAt >= IDLE_MS) {
      isIdle = true;
      // Intervals rest in pages without the focus; so do second tries, which idle pages do without.
      focusManager.setFocused(false);
    }
  }, IDLE_EVERY_MS);
}
