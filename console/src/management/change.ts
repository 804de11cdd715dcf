/** Changes that a page makes: why one failed, and asking again for what it has changed. */

import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

/** Return a function that changes something, and why the last change failed. */
export function useChange(...keys: string[]) {
  const client = useQueryClient();
  const [failure, setFailure] = useState<unknown>(null);
  const change = async (work: () => Promise<unknown>): Promise<boolean> => {
    setFailure(null);
    try {
      await work();
    } catch (error) {
      setFailure(error);
      return false;
    }
    await Promise.all(keys.map((key) => client.invalidateQueries({ queryKey: [key] })));
    return true;
  };
  return { change, failure };
}
