/** The editor of a manifest: completes by the schema, and shows the validator's messages at their lines. */

import { acceptCompletion, autocompletion, completionKeymap, startCompletion, type CompletionContext, type CompletionResult } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { indentUnit, StreamLanguage, syntaxHighlighting, type StreamParser } from "@codemirror/language";
import { Compartment, EditorState, type Extension } from "@codemirror/state";
import { Decoration, EditorView, highlightActiveLine, keymap, lineNumbers, WidgetType } from "@codemirror/view";
import { useEffect, useRef } from "react";
import { fetchJson } from "../api/client";
import { colors, shadowOf, theme } from "../parts/code";
import { complete, type Schema } from "./manifest_schema";
import type { Problem } from "./problems";

interface Props {
  text: string;
  isReadOnly: boolean;
  problems: Problem[];
  onChange: (text: string) => void;
  onSave: () => void;
}

const yaml: StreamParser<null> = {
  startState: () => null,
  token(stream) {
    if (stream.eatSpace()) return null;
    if (stream.match(/^#.*/)) return "comment";
    if (stream.match(/^-(?=\s|$)/)) return null;
    if (stream.match(/^("[^"]*"|'[^']*'|[^\s:#"'{}[\],][^:#{}[\],]*?)(?=\s*:(\s|$))/)) return "propertyName";
    if (stream.match(/^("([^"\\]|\\.)*"|'([^']|'')*')/)) return "string";
    if (stream.match(/^(true|false|null)(?=[\s,\]}]|$)/)) return "bool";
    if (stream.match(/^-?\d+(\.\d+)?(?=[\s,\]}]|$)/)) return "number";
    stream.next();
    stream.match(/^[^\s,[\]{}:#]*/);
    return null;
  },
};

let schema: Promise<Schema> | null = null;

/** Return the schema, which is asked for once and only where somebody writes. */
function askForSchema(): Promise<Schema> {
  schema ??= fetchJson<Schema>("v1/docs/manifest.schema.json").catch((error: unknown) => {
    schema = null;
    throw error;
  });
  return schema;
}

async function choose(context: CompletionContext): Promise<CompletionResult | null> {
  const before = context.state.doc.lineAt(context.pos).text.slice(0, context.pos - context.state.doc.lineAt(context.pos).from);
  if (!context.explicit && !/[\w.]$|:\s$/.test(before)) return null;
  const root = await askForSchema().catch(() => null);
  const found = root === null ? null : complete(root, context.state.doc.toString(), context.pos);
  if (found === null) return null;
  const options = found.choices.map((each) => ({
    label: each.label,
    detail: each.detail,
    type: "property",
    apply: (view: EditorView, _: unknown, from: number, to: number) => {
      view.dispatch({ changes: { from, to, insert: each.apply }, selection: { anchor: from + each.apply.length } });
      if (each.apply.endsWith(": ")) startCompletion(view);
    },
  }));
  return { from: found.from, options, validFor: /^[\w.]*$/ };
}

class Message extends WidgetType {
  constructor(readonly text: string) {
    super();
  }

  override eq(other: Message): boolean {
    return other.text === this.text;
  }

  toDOM(): HTMLElement {
    const shown = document.createElement("div");
    shown.className = "cm-problem";
    shown.textContent = this.text;
    return shown;
  }
}

function shownProblems(state: EditorState, problems: Problem[]): Extension {
  const marks = problems
    .filter((each) => each.line !== null)
    .sort((a, b) => (a.line ?? 0) - (b.line ?? 0))
    .map((each) => {
      const line = state.doc.line(Math.min(Math.max(1, each.line ?? 1), state.doc.lines));
      return Decoration.widget({ widget: new Message(each.message), block: true, side: 1 }).range(line.to);
    });
  return EditorView.decorations.of(Decoration.set(marks, true));
}

export default function ManifestCode(props: Props) {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const latest = useRef(props);
  latest.current = props;
  const shown = useRef(new Compartment());

  useEffect(() => {
    const shadow = shadowOf(host.current as HTMLDivElement);
    const save = (): boolean => {
      latest.current.onSave();
      return true;
    };
    const editor = new EditorView({
      parent: shadow,
      root: shadow,
      state: EditorState.create({
        doc: latest.current.text,
        extensions: [
          lineNumbers(), history(), highlightActiveLine(), EditorView.lineWrapping, indentUnit.of("  "),
          EditorState.readOnly.of(latest.current.isReadOnly), EditorState.tabSize.of(2),
          autocompletion({ override: latest.current.isReadOnly ? [] : [choose], icons: false }),
          // Escape, then Tab, leaves the editor.
          keymap.of([{ key: "Mod-s", run: save, preventDefault: true }, { key: "Tab", run: acceptCompletion }, ...defaultKeymap, ...historyKeymap, ...completionKeymap, indentWithTab]),
          StreamLanguage.define(yaml), syntaxHighlighting(colors), theme, shown.current.of([]),
          EditorView.contentAttributes.of({ "aria-label": "Manifest" }),
          EditorView.updateListener.of((update) => {
            if (update.docChanged) latest.current.onChange(update.state.doc.toString());
          }),
        ],
      }),
    });
    view.current = editor;
    return () => editor.destroy();
  }, []);

  // A text that came from elsewhere, such as a newer revision.
  useEffect(() => {
    const editor = view.current;
    if (editor === null || editor.state.doc.toString() === props.text) return;
    editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: props.text } });
  }, [props.text]);

  useEffect(() => {
    const editor = view.current;
    if (editor === null) return;
    editor.dispatch({ effects: shown.current.reconfigure(shownProblems(editor.state, props.problems)) });
    const first = props.problems.find((each) => each.line !== null)?.line;
    if (first != null) editor.dispatch({ effects: EditorView.scrollIntoView(editor.state.doc.line(Math.min(first, editor.state.doc.lines)).from, { y: "center" }) });
  }, [props.problems]);

  return <div ref={host} className="editor manifest-box" />;
}
