/** The editor of statements. It is in a shadow tree, where its styles need no exception of the policy. */

import { acceptCompletion, autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { PostgreSQL, sql, type SQLNamespace } from "@codemirror/lang-sql";
import { bracketMatching, HighlightStyle, indentOnInput, syntaxHighlighting } from "@codemirror/language";
import { Compartment, EditorState, Prec } from "@codemirror/state";
import { Decoration, drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers, placeholder } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { useEffect, useRef } from "react";
import { statementAt } from "./statements";

export interface Mark {
  from: number;
  to: number;
}
interface Props {
  text: string;
  schema: SQLNamespace;
  mark: Mark | null;
  onChange: (text: string) => void;
  /** Called with what is selected, or the statement at the cursor, and where it begins. */
  onRun: (statement: string, begin: number) => void;
  /** Gives the page a function that runs what is selected. */
  onReady: (run: () => void) => void;
}

const colors = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--code-keyword)", fontWeight: "600" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--code-text)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--code-number)" },
  { tag: [tags.lineComment, tags.blockComment], color: "var(--quiet)", fontStyle: "italic" },
  { tag: tags.typeName, color: "var(--code-type)" },
]);
const theme = EditorView.theme({
  "&": { height: "100%", fontSize: "14px", color: "var(--text)", backgroundColor: "var(--surface)" },
  "&.cm-focused": { outline: "2px solid var(--focus)", outlineOffset: "-2px" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.55" },
  ".cm-content": { caretColor: "var(--text)" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-gutters": { backgroundColor: "var(--surface)", color: "var(--quiet)", border: "none" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "var(--hover)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "var(--selection)" },
  ".cm-tooltip": { backgroundColor: "var(--raised)", color: "var(--text)", border: "1px solid var(--line)" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--on-accent)" },
  ".cm-error": { textDecoration: "underline wavy var(--bad)", backgroundColor: "var(--bad-soft)" },
});
const marked = Decoration.mark({ class: "cm-error" });

export default function Editor(props: Props) {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const latest = useRef(props);
  latest.current = props;
  const parts = useRef({ language: new Compartment(), mark: new Compartment() });

  useEffect(() => {
    const root = host.current as HTMLDivElement;
    const shadow = root.shadowRoot ?? root.attachShadow({ mode: "open", delegatesFocus: true });
    const run = (): boolean => {
      const state = (view.current as EditorView).state;
      const { from, to, head } = state.selection.main;
      const text = state.doc.toString();
      const found = from === to ? statementAt(text, head) : { text: text.slice(from, to), begin: from };
      latest.current.onRun(found.text, found.begin);
      return true;
    };
    const editor = new EditorView({
      parent: shadow,
      root: shadow,
      state: EditorState.create({
        doc: latest.current.text,
        extensions: [
          Prec.highest(keymap.of([{ key: "Mod-Enter", run }, { key: "Ctrl-Enter", run }])),
          lineNumbers(), history(), drawSelection(), indentOnInput(), bracketMatching(), closeBrackets(),
          autocompletion(), highlightActiveLine(), EditorView.lineWrapping,
          placeholder("SELECT … — Ctrl+Enter runs the statement at the cursor"),
          keymap.of([
            { key: "Tab", run: acceptCompletion },
            ...closeBracketsKeymap, ...defaultKeymap, ...historyKeymap, ...completionKeymap,
            // Escape, then Tab, leaves the editor.
            indentWithTab,
          ]),
          parts.current.language.of(sql({ dialect: PostgreSQL, upperCaseKeywords: true })),
          parts.current.mark.of([]),
          syntaxHighlighting(colors), theme,
          EditorView.contentAttributes.of({ "aria-label": "SQL statement" }),
          EditorView.updateListener.of((update) => {
            if (update.docChanged) latest.current.onChange(update.state.doc.toString());
          }),
        ],
      }),
    });
    view.current = editor;
    latest.current.onReady(run);
    editor.focus();
    return () => editor.destroy();
  }, []);

  useEffect(() => {
    const { language } = parts.current;
    const next = sql({ dialect: PostgreSQL, upperCaseKeywords: true, schema: props.schema });
    view.current?.dispatch({ effects: language.reconfigure(next) });
  }, [props.schema]);

  useEffect(() => {
    const editor = view.current;
    if (editor === null) return;
    const { mark } = props;
    const end = editor.state.doc.length;
    const shown = mark !== null && mark.from < end ? [EditorView.decorations.of(Decoration.set(marked.range(mark.from, Math.min(end, mark.to))))] : [];
    editor.dispatch({ effects: parts.current.mark.reconfigure(shown) });
  }, [props.mark]);

  return <div ref={host} className="editor" data-testid="editor" />;
}
