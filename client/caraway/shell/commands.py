"""The dot commands of the shell."""

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from caraway.rows.formats import Format
from caraway.shell.answers import PRESENTATIONS, Presentation

HELP = """\
.tables            list tables and views
.schema NAME       list the columns of a table
.format [NAME]     show or set the output format: table, json, csv, ndjson
.timing [on|off]   show or hide the duration of statements
.help              show this help
.quit              exit (also Ctrl-D)
The commands of psql work as well: \\dt, \\d NAME, \\timing, \\q, \\?.
Statements end with ';' and can span several lines. Tab completes. Ctrl-C cancels."""

_PSQL = {
    "\\dt": ".tables",
    "\\d": ".schema",
    "\\timing": ".timing",
    "\\q": ".quit",
    "\\?": ".help",
}

TABLES_SQL = (
    "SELECT table_schema, table_name, table_type FROM information_schema.tables "
    "WHERE table_schema <> 'information_schema' ORDER BY table_schema, table_name"
)
SCHEMA_SQL = (
    "SELECT column_name, data_type, is_nullable FROM information_schema.columns "
    "WHERE {condition} ORDER BY ordinal_position"
)


class CommandedShell(Protocol):
    """The settings of a shell that commands change, and how they print."""

    format: Format
    is_timed: bool
    has_ended: bool

    def print_line(self, text: str) -> None: ...

    def print_error(self, text: str) -> None: ...

    def run_statement(self, statement: str, presentation: Presentation) -> None: ...


def run_command(shell: CommandedShell, line: str) -> None:
    """Run one dot command, or one of psql's with the same meaning."""
    name, _, argument = line.partition(" ")
    if name == "\\d" and not argument.strip():
        name = "\\dt"
    handler = _HANDLERS.get(_PSQL.get(name, name))
    if handler is None:
        shell.print_error(f"error: unknown command '{name}'; commands: {' '.join(_HANDLERS)}")
    else:
        handler(shell, argument.strip())


def _tables(shell: CommandedShell, argument: str) -> None:
    shell.run_statement(TABLES_SQL, PRESENTATIONS[Format.TABLE])


def _schema(shell: CommandedShell, argument: str) -> None:
    if argument:
        statement = SCHEMA_SQL.format(condition=_named(argument))
        shell.run_statement(statement, PRESENTATIONS[Format.TABLE])
    else:
        shell.print_error("error: usage: .schema NAME")


def _named(argument: str) -> str:
    schema, _, table = argument.replace('"', "").rpartition(".")
    condition = f"table_name = {_literal(table)}"
    return f"{condition} AND table_schema = {_literal(schema)}" if schema else condition


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _format(shell: CommandedShell, argument: str) -> None:
    if argument in PRESENTATIONS:
        shell.format = Format(argument)
    elif argument:
        shell.print_error(
            f"error: unknown format '{argument}'; formats: {', '.join(PRESENTATIONS)}"
        )
    shell.print_line(f"format is {shell.format}")


def _timing(shell: CommandedShell, argument: str) -> None:
    shell.is_timed = {"on": True, "off": False}.get(argument, not shell.is_timed)
    shell.print_line(f"timing is {'on' if shell.is_timed else 'off'}")


def _help(shell: CommandedShell, argument: str) -> None:
    shell.print_line(HELP)


def _quit(shell: CommandedShell, argument: str) -> None:
    shell.has_ended = True


_HANDLERS: Mapping[str, Callable[[CommandedShell, str], None]] = {
    ".tables": _tables,
    ".schema": _schema,
    ".format": _format,
    ".timing": _timing,
    ".help": _help,
    ".quit": _quit,
    ".exit": _quit,
}

# Completions for the argument of each command. Those of .schema come from the server.
ARGUMENTS: Mapping[str, Iterable[str]] = {
    **dict.fromkeys(_HANDLERS, ()),
    ".format": [str(format) for format in PRESENTATIONS],
    ".timing": ("on", "off"),
}
