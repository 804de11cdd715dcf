/** The colours: those of the system, or the ones that were chosen. */

import { keep, readKept } from "./storage";

const STORED = "caraway.theme";
export type Theme = "system" | "light" | "dark";

export function currentTheme(): Theme {
  const found = readKept("browser", STORED);
  return found === "light" || found === "dark" ? found : "system";
}

export function applyTheme(theme: Theme): void {
  if (theme === "system") {
    keep("browser", STORED, null);
    delete document.documentElement.dataset.theme;
  } else {
    keep("browser", STORED, theme);
    document.documentElement.dataset.theme = theme;
  }
}
