import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { lazy, Suspense, useEffect, useMemo, useState } from "react";
import { RequestError } from "./api/client";
import { currentKey, useKey } from "./api/key";
import { useTables } from "./api/queries";
import HomePage from "./pages/home";
import { askLessWhenIdle, mayTryAgain } from "./parts/attention";
import { Page, Waiting } from "./parts/basics";
import { Boundary, Colours } from "./parts/frame";
import { KeyDialog } from "./parts/key_dialog";
import { Palette, type Found } from "./parts/palette";
import { place, useRoute } from "./parts/route";

const PAGES = [
  { name: "", title: "Home", page: HomePage },
  { name: "sql", title: "SQL", page: lazy(() => import("./sql/page")) },
  { name: "data", title: "Data", page: lazy(() => import("./data/page")) },
  { name: "queries", title: "Queries and jobs", page: lazy(() => import("./pages/queries")) },
  { name: "cluster", title: "Cluster", page: lazy(() => import("./pages/cluster")) },
  { name: "search", title: "Search", page: lazy(() => import("./pages/search")) },
  { name: "chat", title: "Chat and questions", page: lazy(() => import("./pages/chat")) },
  { name: "tools", title: "Tools and MCP", page: lazy(() => import("./pages/tools")) },
  { name: "lists", title: "Functions, models, workers", page: lazy(() => import("./pages/lists")) },
];
const PLACES = PAGES.map((each) => ({ title: each.title, address: each.name === "" ? "#/" : place(each.name) }));
const MOST_TRIES = 2;

const client = new QueryClient({
  defaultOptions: {
    queries: {
      // A refusal stays one; a runtime that is busy or away may come back.
      retry: (tries, error) => mayTryAgain() && tries < MOST_TRIES && !(error instanceof RequestError && error.status >= 400 && error.status < 500),
      // Whether there is a network says nothing about the service, which may be on this machine.
      networkMode: "always",
      refetchOnWindowFocus: false,
      refetchIntervalInBackground: false,
    },
  },
});
askLessWhenIdle(client);

function useFoundTables(): Found[] {
  const { data } = useTables();
  return useMemo(
    () =>
      (data ?? []).map((each) => ({
        label: each.table_schema === "public" ? each.table_name : `${each.table_schema}.${each.table_name}`,
        kind: "table", address: place("data", each.table_schema, each.table_name),
      })),
    [data],
  );
}

export function App() {
  const { parts } = useRoute();
  const shown = PAGES.find((each) => each.name === (parts[0] ?? ""));
  const [isOpen, setOpen] = useState(false);
  useEffect(() => setOpen(false), [parts]);
  const Shown = shown?.page;
  return (
    <QueryClientProvider client={client}>
      <a className="skip" href="#content" onClick={(event) => { event.preventDefault(); document.getElementById("content")?.focus(); }}>Skip to the content</a>
      <div className="frame">
        <header className="side">
          <div className="brand"><span aria-hidden="true">◖</span> Caraway</div>
          <button type="button" className="menu" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>Menu</button>
          <nav aria-label="Pages" className={isOpen ? "pages open" : "pages"}>
            {PLACES.map((each, at) => (
              <a key={each.title} href={each.address} aria-current={PAGES[at] === shown ? "page" : undefined}>{each.title}</a>
            ))}
          </nav>
          <footer>
            <Colours />
            {currentKey() !== null && <button type="button" onClick={() => { useKey(null, false); location.reload(); }}>Forget the key</button>}
            <a href="docs">API</a>
          </footer>
        </header>
        <Boundary key={parts[0] ?? ""}>
          {Shown ? (
            <Suspense fallback={<main id="content" className="page"><Waiting what="the page" /></main>}><Shown /></Suspense>
          ) : (
            <Page title="Not found"><p>There is no such page. <a href="#/">Home</a></p></Page>
          )}
        </Boundary>
      </div>
      <Palette pages={PLACES} what="a table" useFound={useFoundTables} />
      <KeyDialog />
    </QueryClientProvider>
  );
}
