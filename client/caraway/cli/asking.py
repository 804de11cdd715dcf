"""`caraway nsql` and `caraway chat`: questions in plain words."""

import json
import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from caraway.cli import options
from caraway.terminal import terminals
from caraway_core.errors import CarawayError

if TYPE_CHECKING:
    from caraway.client import Client
    from caraway.routes.chatting import Message

# The client sends no more of them.
_MOST_MESSAGES = 500
_LEAVE = ("exit", "quit", ".exit", ".quit")
Model = Annotated[
    str | None,
    typer.Option("--model", metavar="NAME", help="The model; not needed if there is one."),
]


class NsqlFormat(StrEnum):
    """How rows are printed."""

    TABLE = "table"
    JSON = "json"
    SQL = "sql"


@options.connected
def nsql(
    client: "Client",
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="The question.")],
    model: Model = None,
    dataset: Annotated[
        list[str] | None,
        typer.Option("--dataset", metavar="NAME", help="Read only these; may be repeated."),
    ] = None,
    samples: Annotated[
        bool, typer.Option("--samples/--no-samples", help="Tell the model values of the data.")
    ] = True,
    format: Annotated[
        NsqlFormat, typer.Option("--format", help="`sql` shows the statement and does not run it.")
    ] = NsqlFormat.TABLE,
) -> None:
    """Answer a question with SQL that a model writes."""
    if format is NsqlFormat.SQL:
        sql = client.nsql_generate_sql(
            question, datasets=dataset, model=model, sample_data_enabled=samples
        )
        print(sql)
        return
    row = client.nsql(question, datasets=dataset, model=model, sample_data_enabled=samples)
    rows = row["data"]
    if format is NsqlFormat.JSON:
        print(json.dumps(rows, ensure_ascii=False))
        return
    # Beside the rows, so that a pipe gets only these.
    print(terminals.shown(row["sql"], sys.stderr), file=sys.stderr)
    columns = [field["name"] for field in row["schema"]["fields"]] or list(rows[0] if rows else ())
    from caraway.cli.tables import print_table

    print_table(rows, columns)


@options.connected
def chat(
    client: "Client",
    question: Annotated[
        str | None,
        typer.Argument(metavar="QUESTION", help="One question; default: a conversation."),
    ] = None,
    model: Model = None,
    tools: Annotated[
        bool, typer.Option("--tools/--no-tools", help="Show the calls of tools as they happen.")
    ] = True,
) -> None:
    """Talk with a model, which may look into the data with its tools."""
    name = model or _only_model(client)
    messages: list[Message] = []
    if question is not None:
        _say(client, name, messages, question, shows_calls=tools)
        return
    print(f"Talking with {name}. An empty line or Ctrl-D ends it.", file=sys.stderr)
    while (asked := _read()) is not None:
        try:
            _say(client, name, messages, asked, shows_calls=tools)
        except CarawayError as error:
            # The question is forgotten: the next one may work.
            print(f"error: {error.message}", file=sys.stderr)
        except KeyboardInterrupt:
            print("\ncancelled", file=sys.stderr)


def _read() -> str | None:
    """Return the next question, or None at the end."""
    try:
        # Standard input may be a pipe; `input` edits lines where it is a terminal.
        text = input("you> " if sys.stdin.isatty() else "").strip()
    except (EOFError, KeyboardInterrupt):
        return None
    return text if text and text.lower() not in _LEAVE else None


def _say(
    client: "Client", model: str, messages: list["Message"], question: str, *, shows_calls: bool
) -> None:
    """Ask, print the answer as it arrives, and keep both for the next question."""
    asked: Message = {"role": "user", "content": question}
    parts: list[str] = []
    for part in client.chat(model, [*messages, asked], shows_calls=shows_calls):
        parts.append(part)
        print(terminals.shown(part, sys.stdout), end="", flush=True)
    print(flush=True)
    messages += [asked, {"role": "assistant", "content": "".join(parts)}]
    del messages[:-_MOST_MESSAGES]


def _only_model(client: "Client") -> str:
    names = client.models()
    if len(names) == 1:
        return names[0]
    listed = ", ".join(sorted(names)) or "none; add one under 'models' in the manifest"
    raise typer.BadParameter(f"choose a model: {listed}", param_hint="--model")
