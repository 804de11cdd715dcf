/** The plans of EXPLAIN, each as a graph and as text. */

import { useMemo, useState } from "react";
import { parsePlan } from "./plan";
import { PlanGraph } from "./plan_graph";

export function PlanView({ plans }: { plans: { plan_type: string; plan: string }[] }) {
  const [chosen, setChosen] = useState(plans.length - 1);
  const text = plans[chosen]?.plan ?? "";
  const roots = useMemo(() => parsePlan(text), [text]);
  return (
    <div className="plan">
      <div className="grid-tools" role="tablist" aria-label="Plans">
        {plans.map((plan, at) => (
          <button key={plan.plan_type} type="button" role="tab" aria-selected={at === chosen} onClick={() => setChosen(at)}>
            {plan.plan_type.replaceAll("_", " ")}
          </button>
        ))}
      </div>
      <PlanGraph key={chosen} roots={roots} label="Graph of the plan" />
      <details>
        <summary>As text</summary>
        <pre>{text}</pre>
      </details>
    </div>
  );
}
