import { QueryClient, QueryClientProvider, useQuery, useQueryClient } from "@tanstack/react-query";
import { lazy, Suspense, useEffect, useMemo, useState, useSyncExternalStore, type FormEvent } from "react";
import { RequestError } from "../api/client";
import { asksForKey, subscribe, useKey } from "../api/key";
import { askLessWhenIdle, mayTryAgain } from "../parts/attention";
import { Answer, Empty, Failure, Page, Waiting } from "../parts/basics";
import { Boundary, Colours } from "../parts/frame";
import { Palette, type Found } from "../parts/palette";
import { place, useRoute } from "../parts/route";
import { JoinForm } from "./joining";
import ProjectsPage, { useProjects } from "./projects";
import { allows, RoleHere } from "./rules";
import { chooseOrganization, currentOrganization, findOrganizations, hasExpired, issuerAddress, signIn, signOut, useWays, type Organization } from "./session";

const ProjectPage = lazy(() => import("./project"));
const OrganizationPage = lazy(() => import("./organization"));
const ActivityPage = lazy(() => import("./activity"));
const PAGES = [
  { name: "", title: "Projects", scope: "apps:read" },
  { name: "organization", title: "Organization", scope: "members:read" },
  { name: "activity", title: "Activity", scope: "activity:read" },
];
const client = new QueryClient({
  defaultOptions: {
    queries: {
      retry: (tries, error) => mayTryAgain() && tries < 2 && !(error instanceof RequestError && error.status >= 400 && error.status < 500),
      // Whether there is a network says nothing about the service, which may be on this machine.
      networkMode: "always",
      refetchOnWindowFocus: false,
    },
  },
});
askLessWhenIdle(client);

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
  const ways = useWays();
  // The link to the issuer leads back to where the page is.
  useRoute();
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
      {hasExpired() && <p role="status">Your session has ended. Sign in again: you come back to where you were.</p>}
      <form className="sign-in" onSubmit={(event) => void submit(event)}>
        <label>Username<input autoFocus required autoComplete="username" value={username} onChange={(event) => setUsername(event.target.value)} /></label>
        <label>Password<input required type="password" autoComplete="current-password" value={password} onChange={(event) => setPassword(event.target.value)} /></label>
        <button type="submit" className="main-button">Sign in</button>
        {failure !== null && <Failure error={failure} />}
        {ways.data?.oidc && <a className="button" href={issuerAddress()}>Sign in with the identity provider</a>}
        <p className="quiet">A first password is set with the token of <code>caraway management init</code>: <code>PUT /v1/whoami/password</code>.</p>
      </form>
    </Page>
  );
}

function useFoundProjects(): Found[] {
  const { data } = useProjects();
  return useMemo(() => (data?.projects ?? []).map((each) => ({ label: each.name, kind: "project", address: place("projects", String(each.id)) })), [data]);
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
  const organization = organizations.find((each) => each.name === chosen) ?? organizations[0];
  const role = organization?.role ?? "viewer";
  const pages = PAGES.filter((each) => allows(role, each.scope));
  const isRefused = PAGES.some((each) => each.name === at) && !pages.some((each) => each.name === at);
  return (
    <RoleHere.Provider value={role}>
    <div className="frame">
      <header className="side">
        <div className="brand"><span aria-hidden="true">◖</span> Caraway</div>
        <button type="button" className="menu" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>Menu</button>
        <nav aria-label="Pages" className={isOpen ? "pages open" : "pages"}>
          {pages.map((each) => (
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
        {organization === undefined ? (
          <Page title="Organization">
            <Empty>You are in no organization. Join the one that has invited you, or ask its administrator to add you.</Empty>
            <JoinForm />
          </Page>
        ) : isRefused ? (
          <Page title="Not allowed"><p>The role {role} does not see this page. <a href="#/">Projects</a></p></Page>
        ) : (
          <Suspense fallback={<main id="content" className="page"><Waiting what="the page" /></main>}>
            {at === "" ? <ProjectsPage /> : at === "projects" ? <ProjectPage /> : at === "organization" ? <OrganizationPage organization={organization} /> : at === "activity" ? <ActivityPage /> : <Page title="Not found"><p>There is no such page. <a href="#/">Projects</a></p></Page>}
          </Suspense>
        )}
      </Boundary>
    </div>
    <Palette pages={pages.map((each) => ({ title: each.title, address: each.name === "" ? "#/" : place(each.name) }))} what="a project" useFound={useFoundProjects} />
    </RoleHere.Provider>
  );
}
