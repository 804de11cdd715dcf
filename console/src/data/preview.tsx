/** The first rows of a table. */

import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense } from "react";
import { Answer, Waiting } from "../parts/basics";
import type { Result } from "../sql/results";

const Grid = lazy(() => import("../sql/grid").then((module) => ({ default: module.Grid })));

export function Preview({ path }: { path: string }) {
  const rows = useQuery({
    queryKey: ["preview", path],
    queryFn: async ({ signal }) => {
      const { readResult } = await import("../sql/results");
      let last: Result | null = null;
      for await (const result of readResult({ sql: `SELECT * FROM ${path} LIMIT 100`, signal })) last = result;
      return last as Result;
    },
    staleTime: 30_000,
    // A table of Arrow is compared by what it is.
    structuralSharing: false,
  });
  return (
    <Answer of={rows} what="rows">
      {(result) => (
        <Suspense fallback={<Waiting what="rows" />}>
          <Grid result={result} />
        </Suspense>
      )}
    </Answer>
  );
}
