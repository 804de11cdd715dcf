import { QueryClient, QueryClientProvider, useQuery, useQueryClient } from "@tanstack/react-query";
import { lazy, Suspense, useEffect, useState, useSyncExternalStore, type FormEvent } from "react";
import { RequestError } from "../api/client";
import { asksForKey, subscribe, useKey } from "../api/key";
import { Answer, Empty, Failure, Page, Waiting } from "../parts/basics";
import { Boundary, Colours } from "../parts/frame";
import { place, useRoute } from "../parts/route";
import ProjectsPage from "./projects";
import { chooseOrganization, currentOrganization, findOrganizations, signIn, signOut, type Organization } from "./session";

const ProjectPage = lazy(() => import("./project"));
const PAGES = [
  { name: "", title: "Projects" },
  { name: "organization", title: "Organization", page: lazy(() => import("./organization")) },
  { name: "activity", title: "Activity", page: lazy(() => import("./activity")) },
];
const client = new QueryClient({
  defaultOptions: {
    queries: {
      retry: (tries, error) => tries < 2 && !(error instanceof RequestError && error.status >= 400 && error.status < 500),
      refetchOnWindowFocus: false,
    },
  },
});

export function ManagementApp() {
  return (
    <QueryClientProvider client={client}>
      <SignedIn />
    </QueryClientProvider>
  );
}

function SignedIn() {
  const isRefused = useSyncExternalStore(subscribe, asksForKey);
  const organizations = useQuery({ queryKey: ["organizations"], queryFn: ({ signal }) => findOrganizations(signal), staleTime: Infinity });
  return (
    <Answer of={organizations} what="your organizations">
      {(found) => (found === null || isRefused ? <SignIn /> : <Frame organizations={found} />)}
    </Answer>
  );
}

function SignIn() {
  const queries = useQueryClient();
  const [username, setUsername] = useState("");
  const [password, setPassword] = useState("");
  const [failure, setFailure] = useState<unknown>(null);
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    setFailure(null);
    try {
      await signIn(username, password);
      setPassword("");
      queries.clear();
      useKey(null, false);
      await queries.invalidateQueries();
    } catch (error) {
      setFailure(error);
    }
  };
  return (
    <Page title="Sign in">
      <form className="sign-in" onSubmit={(event) => void submit(event)}>
        <label>Username<input autoFocus required autoComplete="username" value={username} onChange={(event) => setUsername(event.target.value)} /></label>
        <label>Password<input required type="password" autoComplete="current-password" value={password} onChange={(event) => setPassword(event.target.value)} /></label>
        <button type="submit" className="main-button">Sign in</button>
        {failure !== null && <Failure error={failure} />}
        <p className="quiet">A first password is set with the token of <code>caraway management init</code>: <code>PUT /v1/whoami/password</code>. Where the service has an issuer of OpenID Connect, <a href="auth/oidc">sign in there</a>.</p>
      </form>
    </Page>
  );
}

function Frame({ organizations }: { organizations: Organization[] }) {
  const { parts } = useRoute();
  const queries = useQueryClient();
  const [chosen, setChosen] = useState(currentOrganization());
  const [isOpen, setOpen] = useState(false);
  useEffect(() => setOpen(false), [parts]);
  const choose = (name: string): void => {
    chooseOrganization(name);
    setChosen(name);
    void queries.resetQueries({ predicate: (query) => query.queryKey[0] !== "organizations" });
  };
  const leave = async (): Promise<void> => {
    await signOut();
    queries.removeQueries({ predicate: (query) => query.queryKey[0] !== "organizations" });
  };
  const at = parts[0] ?? "";
  const Shown = PAGES.find((each) => each.name === at)?.page;
  return (
    <div className="frame">
      <header className="side">
        <div className="brand"><span aria-hidden="true">◖</span> Caraway</div>
        <button type="button" className="menu" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>Menu</button>
        <nav aria-label="Pages" className={isOpen ? "pages open" : "pages"}>
          {PAGES.map((each) => (
            <a key={each.name} href={each.name === "" ? "#/" : place(each.name)} aria-current={each.name === (at === "projects" ? "" : at) ? "page" : undefined}>{each.title}</a>
          ))}
        </nav>
        <footer>
          <label>Organization{" "}
            <select value={chosen ?? ""} onChange={(event) => choose(event.target.value)}>
              {organizations.map((each) => <option key={each.id}>{each.name}</option>)}
            </select>
          </label>
          <Colours />
          <button type="button" onClick={() => void leave()}>Sign out</button>
        </footer>
      </header>
      <Boundary key={`${chosen} ${parts.join("/")}`}>
        {organizations.length === 0 ? <Page title="Organization"><Empty>You are in no organization. An invitation or an administrator adds you to one.</Empty></Page> : (
          <Suspense fallback={<main id="content" className="page"><Waiting what="the page" /></main>}>
            {at === "" ? <ProjectsPage /> : at === "projects" ? <ProjectPage /> : Shown ? <Shown /> : <Page title="Not found"><p>There is no such page. <a href="#/">Projects</a></p></Page>}
          </Suspense>
        )}
      </Boundary>
    </div>
  );
}
