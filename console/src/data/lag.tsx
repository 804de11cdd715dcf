/** How far accelerated datasets are behind their sources, in words. */

import type { DatasetEntry, Lag } from "../api/types";
import { Time } from "../parts/basics";
import { formatAge } from "../parts/format";

export function lagWords({ behind_ms: behind }: Pick<Lag, "behind_ms">): string {
  if (behind === null) return "not known here";
  return behind === 0 ? "up to date with its source" : `${formatAge(behind)} behind its source`;
}

/** A lag, and when the rows changed last. */
export function LagView({ lag }: { lag: Lag }) {
  return <><span className={lag.is_late ? "bad" : undefined}>{lagWords(lag)}{lag.is_late && ", late"}</span>; last change <Time value={lag.last_change_at} /></>;
}

export type Lagging = DatasetEntry & { lag: Lag & { behind_ms: number } };

/** Return the dataset that is farthest behind its source, if some lag is known. */
export function farthestBehind(datasets: DatasetEntry[]): Lagging | undefined {
  const known = datasets.filter((each): each is Lagging => each.lag != null && each.lag.behind_ms !== null);
  return known.reduce<Lagging | undefined>((most, each) => (most === undefined || each.lag.behind_ms > most.lag.behind_ms ? each : most), undefined);
}
