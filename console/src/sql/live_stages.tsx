/** The stages of a statement while it runs on executors. */

import { useEffect, useMemo, useState } from "react";
import type { Stage } from "../api/types";
import { PlanGraph } from "./plan_graph";
import { followStages, planOf } from "./stages";

/** Most statements end sooner, and are not asked about. */
const FIRST_MS = 300;

export default function LiveStages({ id, isAsked = false }: { id: string; isAsked?: boolean }) {
  const [stages, setStages] = useState<Stage[]>([]);
  useEffect(() => {
    const control = new AbortController();
    const follow = (): void => {
      // Without them the statement runs as well.
      followStages(id, control.signal, setStages).catch(() => undefined);
    };
    const timer = setTimeout(follow, isAsked ? 0 : FIRST_MS);
    return () => {
      clearTimeout(timer);
      control.abort();
    };
  }, [id, isAsked]);
  const roots = useMemo(() => planOf(stages), [stages]);
  if (roots.length === 0) return isAsked ? <p className="quiet" role="status">It does not run in stages, or not yet.</p> : null;
  return <PlanGraph roots={roots} label="Stages" />;
}
