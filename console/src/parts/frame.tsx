/** What the pages of runtimes and of the management service have around them. */

import { Component, useState, type ReactNode } from "react";
import { Failure, Page } from "./basics";
import { applyTheme, currentTheme, type Theme } from "./theme";

export function Colours() {
  const [theme, setTheme] = useState<Theme>(currentTheme);
  const choose = (next: Theme): void => {
    setTheme(next);
    applyTheme(next);
  };
  return (
    <label>
      Colours{" "}
      <select value={theme} onChange={(event) => choose(event.target.value as Theme)}>
        <option value="system">as the system</option>
        <option value="light">light</option>
        <option value="dark">dark</option>
      </select>
    </label>
  );
}

/** Shows what failed in a page; the others go on. */
export class Boundary extends Component<{ children: ReactNode }, { error: unknown }> {
  override state = { error: null };

  static getDerivedStateFromError(error: unknown): { error: unknown } {
    return { error };
  }

  override render(): ReactNode {
    if (this.state.error === null) return this.props.children;
    return <Page title="Error"><Failure error={explained(this.state.error)} retry={() => location.reload()} /></Page>;
  }
}

/** Return an error in words, if it is that a part of the page is not there. */
function explained(error: unknown): unknown {
  if (!(error instanceof TypeError) || !/import|module|load/i.test(error.message)) return error;
  return new Error("this part of the page cannot be loaded: the service does not respond, or another release serves now");
}
