"""`caraway search`: search datasets and print what was found."""

import json
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from caraway.cli import options
from caraway.cli.options import StatusFormat

if TYPE_CHECKING:
    from caraway.client import Client

_LONGEST_MATCH = 100


@options.connected
def search(
    client: "Client",
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What to search for.")],
    dataset: Annotated[
        list[str],
        typer.Option("--dataset", "-d", metavar="NAME", help="Dataset or view; may be repeated."),
    ],
    limit: Annotated[int, typer.Option("--limit", help="Maximum number of results.")] = 10,
    where: Annotated[
        str | None, typer.Option("--where", metavar="SQL", help="Find only rows that pass.")
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option("--column", metavar="NAME", help="Also show a column; may be repeated."),
    ] = None,
    keyword: Annotated[
        list[str] | None,
        typer.Option(
            "--keyword",
            metavar="WORD",
            help="What full-text search looks for instead of TEXT; may be repeated.",
        ),
    ] = None,
    format: options.StatusFormatOption = StatusFormat.TABLE,
) -> None:
    """Search datasets by meaning and by words."""
    answer = client.search(
        text,
        datasets=dataset,
        limit=limit,
        where=where,
        additional_columns=column or None,
        keywords=keyword or None,
    )
    if format is StatusFormat.JSON:
        sys.stdout.write(json.dumps(answer, ensure_ascii=False) + "\n")
        return
    # rich takes 0.2 s to import.
    from caraway.cli import tables

    shown = list(dict.fromkeys(column or ()))
    rows = [_row(result, shown) for result in answer["results"]]
    tables.print_table(rows, ("score", "dataset", "key", *shown, "match"))


def _row(result: Mapping[str, Any], columns: Sequence[str]) -> Mapping[str, object]:
    key, data = result["primary_key"], result["data"]
    texts = [text for found in result["matches"].values() for text in found]
    row: dict[str, object] = {name: data.get(name, key.get(name)) for name in columns}
    row["score"] = f"{result['score']:.4f}"
    row["dataset"] = result["dataset"]
    row["key"] = ", ".join(map(str, key.values()))
    row["match"] = _shortened(" … ".join(texts))
    return row


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_MATCH else line[: _LONGEST_MATCH - 1] + "…"
