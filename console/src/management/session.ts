/** Who is signed in, and for which organization requests are. */

import { useQuery } from "@tanstack/react-query";
import { noteRefusal } from "../api/key";
import { fetchJson, RequestError, useCredentials } from "../api/client";
import { keep, readKept } from "../parts/storage";
import { forgetDrafts } from "./drafts";

const ORGANIZATION = "caraway.organization";
let csrf: string | null = null;
let organization = readKept("browser", ORGANIZATION);
let hasLeft = false;

useCredentials(() => ({
  ...(csrf === null ? {} : { "x-csrf-token": csrf }),
  ...(organization === null ? {} : { "x-org-name": organization }),
}));

export interface Organization {
  id: number;
  name: string;
  role: string;
}

export function currentOrganization(): string | null {
  return organization;
}

export function chooseOrganization(name: string | null): void {
  organization = name;
  keep("browser", ORGANIZATION, name);
}

/** Return the organizations of who is signed in; null if nobody is. */
export async function findOrganizations(signal?: AbortSignal): Promise<Organization[] | null> {
  try {
    csrf = (await fetchJson<{ csrf_token: string }>("v1/sessions/current", { signal })).csrf_token;
    const { orgs } = await fetchJson<{ orgs: Organization[] }>("v1/orgs", { signal });
    if (!orgs.some((each) => each.name === organization)) chooseOrganization(orgs[0]?.name ?? null);
    return orgs;
  } catch (error) {
    if (error instanceof RequestError && error.status === 401) return null;
    if (error instanceof RequestError && error.status === 403 && organization !== null) {
      // The organization that the browser remembers is of somebody else.
      chooseOrganization(null);
      return findOrganizations(signal);
    }
    throw error;
  }
}

export async function signIn(username: string, password: string): Promise<void> {
  const made = await fetchJson<{ csrf_token: string }>("v1/sessions", { json: { username, password } });
  csrf = made.csrf_token;
  hasLeft = false;
}

export async function signOut(): Promise<void> {
  await fetchJson("v1/sessions/current", { method: "DELETE" }).catch(() => undefined);
  csrf = null;
  hasLeft = true;
  forgetDrafts();
  noteRefusal();
}

/** Return whether a session of this page ended by itself. */
export function hasExpired(): boolean {
  return csrf !== null && !hasLeft;
}

/** Return the address that signs in at the issuer of the installation, and leads back to this place. */
export function issuerAddress(): string {
  return `auth/oidc?return_to=${encodeURIComponent(`/${location.hash}`)}`;
}

export function useWays() {
  return useQuery({ queryKey: ["ways"], queryFn: ({ signal }) => fetchJson<{ oidc: boolean }>("sign-in/ways", { signal }), staleTime: Infinity });
}

export interface WhoAmI {
  scopes: string[];
  user: { id: number; username: string } | null;
}

export function useWhoAmI() {
  return useQuery({ queryKey: ["whoami"], queryFn: ({ signal }) => fetchJson<WhoAmI>("v1/whoami", { signal }), staleTime: Infinity });
}
