"""CommandStatementIngest: rows of a driver for a dataset."""

from typing import Any

from pyarrow import flight

from caraway_scheduler.flight.ingesting import NO_CREATION, Ingesting, Mode
from caraway_scheduler.flight.sql import metadata, preparing
from caraway_scheduler.flight.sql.protocol import FlightSql_pb2 as proto
from caraway_serving.flight import statuses

_OPTIONS = proto.CommandStatementIngest.TableDefinitionOptions


def ingest(
    ingesting: Ingesting,
    context: flight.ServerCallContext,
    command: Any,
    reader: flight.MetadataRecordBatchReader,
) -> int:
    """Write the rows that follow a command, and count them.

    Raises:
        InvalidArgument, NotFound, Unimplemented, QueryError: nothing was written.
    """
    preparing.refuse_transaction(command)
    if command.temporary:
        raise statuses.Unimplemented("temporary tables are not supported")
    if command.catalog and command.catalog != metadata.CATALOG:
        raise statuses.NotFound(f"there is no catalog '{command.catalog}'")
    dataset = f"{command.schema}.{command.table}" if command.schema else command.table
    mode = _mode(command.table_definition_options, dataset)
    return ingesting.take(context, dataset, reader, "flightsql", mode)


def _mode(options: Any, dataset: str) -> Mode:
    match options.if_exists:
        case _OPTIONS.TABLE_EXISTS_OPTION_APPEND:
            return "append"
        case _OPTIONS.TABLE_EXISTS_OPTION_REPLACE:
            return "replace"
        case _OPTIONS.TABLE_EXISTS_OPTION_FAIL:
            raise statuses.InvalidArgument(f"dataset '{dataset}' is not created: {NO_CREATION}")
        case _:
            raise statuses.InvalidArgument(
                "the command must say what to do where the table exists: append or replace"
            )
