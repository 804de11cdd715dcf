"""The messages of prepared statements, by the generated classes."""

from google.protobuf.any_pb2 import Any as Packed

from caraway_gateway.flight.sql.protocol import FlightSql_pb2 as proto

CREATE, CLOSE = "CreatePreparedStatement", "ClosePreparedStatement"
_FIELDS = {
    proto.ActionCreatePreparedStatementRequest: "query",
    proto.ActionClosePreparedStatementRequest: "prepared_statement_handle",
    proto.CommandPreparedStatementQuery: "prepared_statement_handle",
}


def content(message: bytes) -> bytes:
    """Return the query or the handle in a message; b"": it is none of these."""
    packed = Packed()
    try:
        packed.ParseFromString(message)
    except Exception:
        return b""
    for kind, field in _FIELDS.items():
        made = kind()
        if packed.Unpack(made):
            found = getattr(made, field)
            return found.encode() if isinstance(found, str) else bytes(found)
    return b""


def prepared_answer(handle: bytes) -> bytes:
    """Return the answer to the action that prepares a statement."""
    packed = Packed()
    packed.Pack(
        proto.ActionCreatePreparedStatementResult(
            prepared_statement_handle=handle, dataset_schema=b"x" * 300
        )
    )
    return bytes(packed.SerializeToString())
