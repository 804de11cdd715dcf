/** A plan as a graph: what a node reads is below it. */

import { useMemo, useState } from "react";
import { parsePlan, placePlan, type PlanNode } from "./plan";

const WIDE = 190;
const HIGH = 86;
const BOX = { width: 170, height: 56 };
const SHOWN = ["output_rows", "elapsed_compute", "output_bytes"];

export function PlanView({ plans }: { plans: { plan_type: string; plan: string }[] }) {
  const [chosen, setChosen] = useState(plans.length - 1);
  const [node, setNode] = useState<PlanNode | null>(null);
  const text = plans[chosen]?.plan ?? "";
  const { placed, columns, levels } = useMemo(() => placePlan(parsePlan(text)), [text]);
  return (
    <div className="plan">
      <div className="grid-tools" role="tablist" aria-label="Plans">
        {plans.map((plan, at) => (
          <button key={plan.plan_type} type="button" role="tab" aria-selected={at === chosen} onClick={() => { setChosen(at); setNode(null); }}>
            {plan.plan_type.replaceAll("_", " ")}
          </button>
        ))}
      </div>
      <div className="plan-box" tabIndex={0} role="region" aria-label="Graph of the plan">
        <svg width={columns * WIDE + 20} height={levels * HIGH + 20} role="group" aria-label="Plan">
          {placed.map(
            (each, at) =>
              each.parent && (
                <path key={`line-${at}`} className="plan-line"
                  d={`M${each.x * WIDE + BOX.width / 2 + 10},${each.y * HIGH + 10} C${each.x * WIDE + BOX.width / 2 + 10},${each.y * HIGH - 10} ${each.parent.x * WIDE + BOX.width / 2 + 10},${each.parent.y * HIGH + BOX.height + 30} ${each.parent.x * WIDE + BOX.width / 2 + 10},${each.parent.y * HIGH + BOX.height + 10}`} />
              ),
          )}
          {placed.map((each, at) => {
            const shown = SHOWN.map((name) => each.node.metrics.find(([own]) => own === name)?.[1]).filter(Boolean);
            return (
              <g key={at} transform={`translate(${each.x * WIDE + 10},${each.y * HIGH + 10})`} className={node === each.node ? "plan-node chosen" : "plan-node"}
                role="button" tabIndex={0} aria-label={`${each.node.name} ${shown.join(", ")}`} onClick={() => setNode(each.node)}
                onKeyDown={(event) => { if (event.key === "Enter") setNode(each.node); }}>
                <rect {...BOX} rx={6} />
                <text x={10} y={22}>{cut(each.node.name)}</text>
                <text x={10} y={42} className="plan-quiet">{cut(shown.length > 0 ? shown.join(" · ") : each.node.detail)}</text>
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
      <details>
        <summary>As text</summary>
        <pre>{text}</pre>
      </details>
    </div>
  );
}

function cut(text: string): string {
  return text.length > 24 ? `${text.slice(0, 23)}…` : text;
}
