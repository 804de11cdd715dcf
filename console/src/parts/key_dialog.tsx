/** Asks for the API key where the runtime wants one. */

import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState, useSyncExternalStore, type FormEvent } from "react";
import { asksForKey, currentKey, subscribe, useKey } from "../api/key";

export function KeyDialog() {
  const isAsked = useSyncExternalStore(subscribe, asksForKey);
  const client = useQueryClient();
  const dialog = useRef<HTMLDialogElement>(null);
  const [value, setValue] = useState("");
  const [isKept, setKept] = useState(false);
  useEffect(() => {
    if (isAsked && !dialog.current?.open) dialog.current?.showModal();
    if (!isAsked) dialog.current?.close();
  }, [isAsked]);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    useKey(value.trim(), isKept);
    setValue("");
    void client.invalidateQueries();
  };
  return (
    <dialog ref={dialog} aria-labelledby="key-title">
      <form onSubmit={submit}>
        <h2 id="key-title">API key</h2>
        <p>{currentKey() === null ? "This runtime asks for a key." : "The runtime does not accept this key any more."}</p>
        <label>Key<input type="password" autoComplete="off" required value={value} onChange={(event) => setValue(event.target.value)} /></label>
        <label><input type="checkbox" checked={isKept} onChange={(event) => setKept(event.target.checked)} /> keep it until this tab is closed</label>
        <button type="submit" className="main-button">Use the key</button>
      </form>
    </dialog>
  );
}
