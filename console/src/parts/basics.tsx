/** Small parts that all pages share. */

import { useEffect, useState, type ReactNode } from "react";
import { RequestError } from "../api/client";
import { formatTime } from "./format";

export function Page({ title, actions, children }: { title: string; actions?: ReactNode; children: ReactNode }) {
  useEffect(() => {
    document.title = `${title} · Caraway`;
  }, [title]);
  return (
    <main id="content" className="page" tabIndex={-1}>
      <header className="page-head">
        <h1>{title}</h1>
        <div className="actions">{actions}</div>
      </header>
      {children}
    </main>
  );
}

const TONES: Record<string, string> = {
  ready: "good", Ready: "good", SUCCEEDED: "good", error: "bad", FAILED: "bad", Error: "bad",
  succeeded: "good", failed: "bad", queued: "wait", in_progress: "wait", firing: "bad", ok: "good", initializing: "wait", refreshing: "wait", RUNNING: "wait", PENDING: "wait", draining: "wait",
};

/** A state, by its word and not by its colour alone. */
export function State({ value }: { value: string }) {
  return <span className={`state ${TONES[value] ?? ""}`}>{value.toLowerCase()}</span>;
}

export function Time({ value }: { value: string }) {
  const { local, utc } = formatTime(value);
  return (
    <time dateTime={value} title={utc}>
      {local}
    </time>
  );
}

export function Failure({ error, retry }: { error: unknown; retry?: () => void }) {
  const message = error instanceof Error ? error.message : String(error);
  const status = error instanceof RequestError && error.status ? ` (${error.status})` : "";
  const problems = error instanceof RequestError ? error.problems : [];
  return (
    <div className="failure" role="alert">
      <p>
        {message}
        {status}
      </p>
      {problems.length > 1 && (
        <ul>
          {problems.map((each) => (
            <li key={each}>{each}</li>
          ))}
        </ul>
      )}
      {retry && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

/** Says that something is asked for, and after a while that it takes long. */
export function Waiting({ what }: { what: string }) {
  const [isLong, setLong] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLong(true), 5_000);
    return () => clearTimeout(timer);
  }, []);
  return (
    <p className="quiet" role="status">
      Loading {what} …{isLong && " This takes longer than usual; the runtime may be busy."}
    </p>
  );
}

export function Empty({ children }: { children: ReactNode }) {
  return <div className="empty">{children}</div>;
}

interface Asked<T> {
  data: T | undefined;
  error: unknown;
  refetch: () => unknown;
}

/** Shows the answer of a question, or that there is none yet, or why. */
export function Answer<T>({ of, what, children }: { of: Asked<T>; what: string; children: (data: T) => ReactNode }) {
  if (of.data !== undefined) {
    return (
      <>
        {of.error ? <Failure error={of.error} retry={() => void of.refetch()} /> : null}
        {children(of.data)}
      </>
    );
  }
  if (of.error) return <Failure error={of.error} retry={() => void of.refetch()} />;
  return <Waiting what={what} />;
}

export function Table({ head, label, children }: { head: string[]; label: string; children: ReactNode }) {
  return (
    <div className="table-box" role="region" aria-label={label} tabIndex={0}>
      <table>
        <thead>
          <tr>
            {head.map((name) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}
