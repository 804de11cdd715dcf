/** What roles may do, and what monitors and reactions take: `rules.json` is made from the rules of the service. */

import { createContext, useContext } from "react";
import rules from "./rules.json";

export const ROLES = ["viewer", "member", "admin", "owner"] as const;
export type Role = (typeof ROLES)[number];
export interface Template {
  title: string;
  unit: string;
  op: string;
  sustainSecs: number;
  hasDatasets: boolean;
}
export const TEMPLATES: Record<string, Template> = rules.templates;
export const OPS = rules.ops;
export const WINDOWS = rules.windows;
/** The kinds of reactions, and the fields of their specs. */
export const REACTIONS: { kind: string; fields: string[] }[] = rules.reactions;
export const SEVERITIES = rules.severities;

/** Return whether members with a role may do what needs a scope. */
export function allows(role: string, scope: string): boolean {
  return (rules.roles as Record<string, string[]>)[role]?.includes(scope) ?? false;
}

/** Return the roles that members with a role may give: none above their own. */
export function givenBy(role: string): Role[] {
  return ROLES.slice(0, ROLES.indexOf(role as Role) + 1);
}

export const RoleHere = createContext("viewer");

export function useRole(): string {
  return useContext(RoleHere);
}

/** Return a function that says whether the user may do something in the organization. */
export function useMay(): (scope: string) => boolean {
  const role = useRole();
  return (scope) => allows(role, scope);
}
