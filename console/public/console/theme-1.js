// Runs before anything is drawn: a page in chosen dark colours never shows light ones first.
// Browsers keep this file for ever. A changed file needs another name.
try {
  const chosen = localStorage.getItem("caraway.theme");
  if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
} catch {
  // The browser keeps nothing.
}
