/** Who is signed in, and for which organization requests are. */

import { noteRefusal } from "../api/key";
import { fetchJson, RequestError, useCredentials } from "../api/client";
import { keep, readKept } from "../parts/storage";

const ORGANIZATION = "caraway.organization";
let csrf: string | null = null;
let organization = readKept("browser", ORGANIZATION);

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
}

export async function signOut(): Promise<void> {
  await fetchJson("v1/sessions/current", { method: "DELETE" }).catch(() => undefined);
  csrf = null;
  noteRefusal();
}
