"""The line editor: when Enter runs what was typed, and when it starts a new line."""

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import Completer
from prompt_toolkit.history import History
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from caraway_core.sqltext import splitting

PROMPT = "caraway> "
CONTINUATION = "      -> "


def session(completer: Completer, history: History) -> "PromptSession[str]":
    """An editor with history and completion, over as many lines as a statement takes."""
    return PromptSession(
        PROMPT,
        completer=completer,
        # Names come from the server, and typing must not wait for it.
        complete_in_thread=True,
        complete_while_typing=False,
        enable_history_search=True,
        history=history,
        key_bindings=_bindings(),
        multiline=True,
        prompt_continuation=CONTINUATION,
    )


def ends(text: str) -> bool:
    """Whether Enter runs the text: a command, nothing at all, or every statement has its `;`."""
    stripped = text.strip()
    if not stripped or stripped.startswith(".") or stripped.lower() in ("quit", "exit"):
        return True
    script = splitting.split(text)
    return bool(script.statements) and not script.rest


def _bindings() -> KeyBindings:
    bindings = KeyBindings()

    @bindings.add("enter")
    def _enter(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if ends(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    return bindings
