/** Where notices go, as forms have it, and as requests do. */

import type { Targets } from "./types";

export interface TargetValues {
  url: string;
  token: string;
  emails: string;
  channel: string;
}
const SHOWN = ["url", "emails", "channel"] as const;

export function targetValuesOf(targets: Targets | undefined): TargetValues {
  return {
    url: targets?.http?.url ?? "",
    token: "",
    emails: (targets?.email?.emails ?? []).join(", "),
    channel: targets?.slack?.channelId ?? "",
  };
}

/**
 * Return what a request sends of the targets: nothing if they are as before, which keeps their
 * tokens. Targets replace each other as a whole, so those that stay are sent too.
 */
export function changedTargets(values: TargetValues, present: Targets | undefined): { targets?: Targets } {
  const before = targetValuesOf(present);
  if (present !== undefined && values.token === "" && SHOWN.every((each) => values[each] === before[each])) return {};
  const emails = listOf(values.emails);
  const members = present?.email?.recipientUserIds ?? [];
  const targets: Targets = {};
  if (values.url.trim() !== "") {
    const method = present?.http?.method;
    targets.http = { url: values.url.trim(), ...(method === undefined ? {} : { method }), ...(values.token === "" ? {} : { token: values.token }) };
  }
  if (emails.length > 0 || members.length > 0) targets.email = { emails, recipientUserIds: members };
  if (values.channel.trim() !== "") targets.slack = { channelId: values.channel.trim() };
  return { targets };
}

/** Return the targets in words. */
export function targetWords(targets: Targets): string {
  const members = targets.email?.recipientUserIds ?? [];
  const words = [targets.http?.url, targets.slack && `Slack ${targets.slack.channelId}`, ...(targets.email?.emails ?? []), members.length > 0 && `${members.length} members`];
  return words.filter(Boolean).join(", ") || "nobody";
}

/** Return the parts of a text with commas. */
export function listOf(text: string): string[] {
  return text.split(",").map((each) => each.trim()).filter(Boolean);
}
