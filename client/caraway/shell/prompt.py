"""The line editor, in which Enter runs complete input and otherwise starts a new line."""

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import Completer
from prompt_toolkit.history import History
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from caraway_core.sqltext import splitting

PROMPT = "caraway> "
CONTINUATION = "      -> "


def session(completer: Completer, history: History) -> "PromptSession[str]":
    """Return a multi-line editor with history and completion."""
    return PromptSession(
        PROMPT,
        completer=completer,
        # Names come from the server, and typing must not block on it.
        complete_in_thread=True,
        complete_while_typing=False,
        enable_history_search=True,
        history=history,
        key_bindings=_bindings(),
        multiline=True,
        prompt_continuation=CONTINUATION,
    )


def is_complete(text: str) -> bool:
    """True if Enter runs the text: it is empty, a command, or every statement ends with `;`."""
    stripped = text.strip()
    if not stripped or stripped.startswith((".", "\\")) or stripped.lower() in ("quit", "exit"):
        return True
    script = splitting.split(text)
    return bool(script.statements) and not script.rest


def _bindings() -> KeyBindings:
    bindings = KeyBindings()

    @bindings.add("enter")
    def _enter(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if is_complete(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    return bindings
