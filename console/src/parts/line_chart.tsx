/** A small chart of one value over time. */

import { useId } from "react";
import { formatTime } from "./format";

const WIDE = 300;
const HIGH = 70;

export interface Line {
  title: string;
  /** Times, and the value at each; null where it is not known. */
  at: number[];
  values: (number | null)[];
  format: (value: number) => string;
  /** The value at the top, if it is known; otherwise the largest one is. */
  most?: number;
}

/** Return the parts of a line, which has a gap where a value is not known. */
export function pathOf(at: number[], values: (number | null)[], most: number): string {
  const first = at[0] ?? 0;
  const length = Math.max(1, (at[at.length - 1] ?? 0) - first);
  let isOpen = false;
  return values
    .map((value, number) => {
      if (value === null) {
        isOpen = false;
        return "";
      }
      const x = (((at[number] ?? first) - first) / length) * WIDE;
      const y = HIGH - (Math.min(value, most) / Math.max(most, Number.MIN_VALUE)) * HIGH;
      const step = `${isOpen ? "L" : "M"}${x.toFixed(1)},${y.toFixed(1)}`;
      isOpen = true;
      return step;
    })
    .join("");
}

export function LineChart({ title, at, values, format, most }: Line) {
  const label = useId();
  const known = values.filter((each) => each !== null);
  const highest = known.reduce((a, b) => Math.max(a, b), 0);
  const last = known[known.length - 1];
  return (
    <figure className="line-chart">
      <figcaption id={label}>
        {title} <span className="quiet">now {last === undefined ? "–" : format(last)}, at most {format(highest)}</span>
      </figcaption>
      <svg viewBox={`0 0 ${WIDE} ${HIGH + 2}`} preserveAspectRatio="none" role="img" aria-labelledby={label}>
        <path d={pathOf(at, values, most ?? Math.max(highest, Number.MIN_VALUE))} />
      </svg>
      <div className="line-chart-times quiet" aria-hidden="true">
        <span>{at.length > 0 && formatTime(new Date(at[0] as number).toISOString()).local}</span>
        <span>{at.length > 0 && formatTime(new Date(at[at.length - 1] as number).toISOString()).local}</span>
      </div>
    </figure>
  );
}
