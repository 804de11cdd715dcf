/** Ctrl+K: go to any page, and to what the service has: tables, or projects. */

import { useEffect, useMemo, useRef, useState, type KeyboardEvent } from "react";
import { go } from "./route";

const MOST = 12;

export interface Found {
  label: string;
  kind: string;
  address: string;
}
interface Props {
  pages: { title: string; address: string }[];
  /** What `useFound` finds, in words. */
  what: string;
  /** A hook that asks for what else can be gone to, once the list is open. */
  useFound: () => Found[];
}

export function Palette(props: Props) {
  const [isOpen, setOpen] = useState(false);
  useEffect(() => {
    const listen = (event: globalThis.KeyboardEvent): void => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
        event.preventDefault();
        setOpen((now) => !now);
      }
    };
    window.addEventListener("keydown", listen, true);
    return () => window.removeEventListener("keydown", listen, true);
  }, []);
  return isOpen ? <Opened {...props} close={() => setOpen(false)} /> : null;
}

function Opened({ pages, what, useFound, close }: Props & { close: () => void }) {
  const more = useFound();
  const dialog = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  useEffect(() => dialog.current?.showModal(), []);
  const found = useMemo(() => {
    const wanted = text.toLowerCase();
    const all = [...pages.map((each) => ({ label: each.title, kind: "page", address: each.address })), ...more];
    return all.filter((each) => each.label.toLowerCase().includes(wanted)).slice(0, MOST);
  }, [text, more, pages]);
  const choose = (address: string | undefined): void => {
    if (address !== undefined) go(address);
    close();
  };
  const press = (event: KeyboardEvent): void => {
    if (event.key === "ArrowDown") setAt(Math.min(found.length - 1, at + 1));
    else if (event.key === "ArrowUp") setAt(Math.max(0, at - 1));
    else if (event.key === "Enter") choose(found[at]?.address);
    else return;
    event.preventDefault();
  };
  return (
    <dialog ref={dialog} className="palette" aria-label="Go to" onClose={close}>
      <input autoFocus role="combobox" aria-expanded="true" aria-controls="palette-list" aria-activedescendant={`palette-${at}`} aria-label="Go to"
        placeholder={`Go to a page or ${what}`} value={text} onChange={(event) => { setText(event.target.value); setAt(0); }} onKeyDown={press} />
      <ul id="palette-list" role="listbox" aria-label="Places">
        {found.map((each, number) => (
          <li key={each.address} id={`palette-${number}`} role="option" aria-selected={number === at} onClick={() => choose(each.address)}>
            {each.label} <span className="quiet">{each.kind}</span>
          </li>
        ))}
      </ul>
    </dialog>
  );
}
