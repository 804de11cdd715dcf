import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { applyTheme, currentTheme } from "../parts/theme";
import "../style.css";
import { ManagementApp } from "./app";

applyTheme(currentTheme());
createRoot(document.getElementById("root") as HTMLElement).render(
  <StrictMode>
    <ManagementApp />
  </StrictMode>,
);
