"""The `caraway` command: registers the subcommands and reports their errors."""

import platform
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from caraway.cli import (
    asking,
    cluster,
    ingesting,
    listings,
    management,
    packaging,
    processes,
    queries,
    readiness,
    refreshing,
    runtime,
    searching,
    snapshots,
    sql,
    store,
)
from caraway.cli.managing import (
    deploying,
    deployments,
    figures,
    keys,
    members,
    monitors,
    orgs,
    projects,
    secret_values,
    signing_in,
    tokens,
)
from caraway.terminal import explanations, terminals
from caraway_core.errors import CarawayError
from caraway_core.releases.version import __version__

DEBUG_HELP = "Show Python tracebacks."
BUG_HINT = "this is a bug in Caraway; run `caraway --debug ...` to see the traceback"


class Commands(TyperGroup):
    """Reports errors as one message and an exit code; `--debug` shows the traceback instead."""

    # Any: typer's own signature.
    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except CarawayError as error:
            if ctx.params.get("debug"):
                raise
            _fail(explanations.explain(error))
        except OSError as error:
            # typer handles a closed pipe: it exits without a message.
            if ctx.params.get("debug") or isinstance(error, BrokenPipeError):
                raise
            _fail(str(error))


def _fail(message: str) -> None:
    print(f"error: {terminals.shown(message, sys.stderr)}", file=sys.stderr)
    raise typer.Exit(1)


def options(
    debug: Annotated[
        bool, typer.Option("--debug", envvar="CARAWAY_DEBUG", help=DEBUG_HELP)
    ] = False,
) -> None:
    """Query your files, tables and object stores through one HTTP and one Arrow Flight endpoint."""


def version() -> None:
    """Print the version of Caraway and of Python."""
    print(f"caraway {__version__} (Python {platform.python_version()})")


def build() -> typer.Typer:
    """Build the command with all its subcommands."""
    app = typer.Typer(
        name="caraway",
        cls=Commands,
        no_args_is_help=True,
        # Plain help: rich panels triple the time of `caraway --help`.
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(options)
    app.command("init")(runtime.init)
    app.command("run")(runtime.run)
    app.command("validate")(runtime.validate)
    app.command("package")(packaging.package)
    app.command("add")(packaging.add)
    app.command("head")(processes.head)
    app.command("scheduler")(processes.scheduler)
    app.command("executor")(processes.executor)
    app.command("store")(store.store)
    app.add_typer(cluster.build())
    app.command("operator")(runtime.operator)
    app.add_typer(management.build())
    app.command("login")(signing_in.login)
    app.command("logout")(signing_in.logout)
    app.command("whoami")(signing_in.whoami)
    app.add_typer(orgs.build())
    app.add_typer(projects.build())
    app.command("deploy")(deploying.deploy)
    app.add_typer(deployments.build())
    app.add_typer(secret_values.build())
    app.add_typer(keys.build())
    app.add_typer(members.build())
    app.add_typer(tokens.build())
    app.add_typer(monitors.build())
    app.command("activity")(figures.activity)
    app.command("metrics")(figures.metrics)
    app.command("sql")(sql.sql)
    app.command("nsql")(asking.nsql)
    app.command("chat")(asking.chat)
    app.add_typer(queries.build())
    app.command("search")(searching.search)
    app.command("datasets")(listings.command("datasets"))
    app.command("refresh")(refreshing.refresh)
    app.add_typer(snapshots.build())
    app.command("ingest")(ingesting.ingest)
    app.command("catalogs")(listings.command("catalogs"))
    app.command("models")(listings.command("models"))
    app.command("workers")(listings.command("workers"))
    app.command("functions")(listings.command("functions"))
    app.command("executors")(listings.command("executors"))
    app.command("status")(listings.command("status"))
    app.command("ready")(readiness.ready)
    app.command("version")(version)
    return app


def main() -> None:
    """Run the command line of this process."""
    try:
        build()()
    # The top of the process: any other exception is a bug. Users do not get tracebacks by default.
    except Exception as error:
        if "--debug" in sys.argv:
            raise
        reason = f"{type(error).__name__}: {error}"
        print(f"error: unexpected {reason}; {BUG_HINT}", file=sys.stderr)
        sys.exit(1)
