/** The editor of statements. It is in a shadow tree, where its styles need no exception of the policy. */

import { acceptCompletion, autocompletion, closeBrackets, closeCompletion, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { PostgreSQL, sql, type SQLNamespace } from "@codemirror/lang-sql";
import { bracketMatching, indentOnInput, syntaxHighlighting } from "@codemirror/language";
import { Compartment, EditorState, Prec } from "@codemirror/state";
import { Decoration, drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers, placeholder } from "@codemirror/view";
import { useEffect, useRef } from "react";
import { colors, shadowOf, theme } from "../parts/code";
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

const marked = Decoration.mark({ class: "cm-error" });

export default function Editor(props: Props) {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const latest = useRef(props);
  latest.current = props;
  const parts = useRef({ language: new Compartment(), mark: new Compartment() });

  useEffect(() => {
    const shadow = shadowOf(host.current as HTMLDivElement);
    const run = (): boolean => {
      const { state } = view.current as EditorView;
      // A list that was just offered would cover the rows.
      closeCompletion(view.current as EditorView);
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
          autocompletion({ icons: false }), highlightActiveLine(), EditorView.lineWrapping,
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
