"""Makes the errors of plans that are refused, and checks that no part of a plan is ignored."""

from typing import Any

from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet

from caraway_core.errors import InvalidQueryError
from caraway_engine.client_plans import older

MOST_MESSAGES = 250_000
_IGNORED = frozenset({"hint", "optimization", "git_hash"})
_ENHANCED = "advanced_extension"


def refusal(why: str) -> InvalidQueryError:
    """Return the error for a plan that is not run."""
    return InvalidQueryError(f"the Substrait plan cannot be run: {why}")


def unsupported(what: str) -> InvalidQueryError:
    """Return the error for a part of Substrait that is not read here."""
    return refusal(f"{what} is not supported; send the statement as SQL")


def only(message: Any, *known: str) -> None:
    """Refuse a message that has other fields than those that the caller reads.

    Raises:
        InvalidQueryError: another field is set; ignoring it could change the answer.
    """
    for field, value in message.ListFields():
        if field.name in known or field.name in _IGNORED:
            continue
        if field.name == _ENHANCED and not value.HasField("enhancement"):
            continue
        raise unsupported(f"{_name(message)}.{field.name}")


def check_known(message: Message) -> None:
    """Refuse a plan with fields that this version of Substrait does not have, and a large one.

    Raises:
        InvalidQueryError: there is such a field, or more parts than take a second to read.
    """
    pending: list[Any] = [message]
    count = 1
    while pending:
        found = pending.pop()
        numbers = {each.field_number for each in UnknownFieldSet(found)}
        numbers -= older.FIELDS.get(_name(found), frozenset())
        if numbers:
            raise refusal(
                f"{_name(found)} has the field {min(numbers)}, which Substrait "
                "does not have any more, or not yet; make the plan with a current producer, or "
                "send SQL"
            )
        for field, value in found.ListFields():
            if field.message_type is None:
                continue
            # Counted first: each one that is taken out becomes an object of Python.
            count += len(value) if field.is_repeated else 1
            if count > MOST_MESSAGES:
                raise refusal(
                    f"it has more than {MOST_MESSAGES:,} messages; put long lists of values into "
                    "a dataset"
                )
            pending += value if field.is_repeated else [value]


def _name(message: Message) -> str:
    return str(message.DESCRIPTOR.full_name).removeprefix("substrait.")
