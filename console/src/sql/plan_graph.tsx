/** A tree as a graph: what a node reads is below it. */

import { useMemo, useState } from "react";
import { placePlan, type PlanNode } from "./plan";

const WIDE = 190;
const HIGH = 86;
const BOX = { width: 170, height: 56 };
const SHOWN = ["output_rows", "elapsed_compute", "output_bytes"];

export function PlanGraph({ roots, label }: { roots: PlanNode[]; label: string }) {
  const [chosen, setChosen] = useState<number | null>(null);
  const { placed, columns, levels } = useMemo(() => placePlan(roots), [roots]);
  const node = chosen === null ? null : (placed[chosen]?.node ?? null);
  return (
    <>
      <div className="plan-box" tabIndex={0} role="region" aria-label={label}>
        <svg width={columns * WIDE + 20} height={levels * HIGH + 20} role="group" aria-label="Plan">
          {placed.map(
            (each, at) =>
              each.parent && (
                <path key={`line-${at}`} className="plan-line"
                  d={`M${each.x * WIDE + BOX.width / 2 + 10},${each.y * HIGH + 10} C${each.x * WIDE + BOX.width / 2 + 10},${each.y * HIGH - 10} ${each.parent.x * WIDE + BOX.width / 2 + 10},${each.parent.y * HIGH + BOX.height + 30} ${each.parent.x * WIDE + BOX.width / 2 + 10},${each.parent.y * HIGH + BOX.height + 10}`} />
              ),
          )}
          {placed.map(({ node: each, x, y }, at) => {
            const summary = summaryOf(each);
            return (
              <g key={at} transform={`translate(${x * WIDE + 10},${y * HIGH + 10})`} className={`plan-node ${each.state ?? ""}${at === chosen ? " chosen" : ""}`}
                role="button" tabIndex={0} aria-label={`${each.name} ${summary}`} onClick={() => setChosen(at)}
                onKeyDown={(event) => { if (event.key === "Enter") setChosen(at); }}>
                <rect {...BOX} rx={6} />
                {each.share !== undefined && <rect className="plan-share" y={BOX.height - 5} width={BOX.width * each.share} height={5} rx={2} />}
                <text x={10} y={22}>{cut(each.name)}</text>
                <text x={10} y={42} className="plan-quiet">{cut(summary || each.detail)}</text>
              </g>
            );
          })}
        </svg>
      </div>
      {node !== null && (
        <aside className="plan-detail" aria-label="The chosen node">
          <strong>{node.name}</strong>
          <p>{node.detail}</p>
          <dl>
            {node.metrics.map(([name, value]) => [<dt key={name}>{name}</dt>, <dd key={`${name} value`}>{value}</dd>])}
          </dl>
        </aside>
      )}
    </>
  );
}

function summaryOf(node: PlanNode): string {
  if (node.summary !== undefined) return node.summary;
  return SHOWN.map((name) => node.metrics.find(([own]) => own === name)?.[1]).filter(Boolean).join(" · ");
}

function cut(text: string): string {
  return text.length > 24 ? `${text.slice(0, 23)}…` : text;
}
