"""A plan that a client sends, as the statement that answers it."""

from collections.abc import Sequence
from functools import partial

from google.protobuf.message import DecodeError
from substrait.plan_pb2 import Plan

from caraway_engine.client_plans import refusals, types
from caraway_engine.client_plans.losses import Losses
from caraway_engine.client_plans.names import PlanFunctions
from caraway_engine.client_plans.refusals import only, refusal, unsupported
from caraway_engine.client_plans.relations import PlanWriter, SchemaOf
from caraway_engine.client_plans.words import PlanTerm


def written(encoded: bytes, schema_of: SchemaOf) -> str:
    """Write a plan as SQL whose columns have the names of the plan's root.

    Raises:
        InvalidQueryError: it is not a plan, or a part of it is wrong or not supported.
    """
    plan = Plan()
    try:
        plan.ParseFromString(encoded)
    except DecodeError as exc:
        raise refusal(
            "its bytes are no substrait.Plan, or it is nested more than 100 messages deep"
        ) from exc
    refusals.check_known(plan)
    only(
        plan, "version", "extension_urns", "extensions", "relations", "advanced_extensions",
        "expected_type_urls",
    )  # fmt: skip
    if plan.advanced_extensions.HasField("enhancement"):
        raise unsupported("an enhancement of the plan")
    if plan.version.major_number != 0:
        raise refusal(f"it is of version {plan.version.major_number} of Substrait, and not 0")
    if len(plan.relations) != 1 or plan.relations[0].WhichOneof("rel_type") != "root":
        raise refusal("it must have one relation, which is a RelRoot")
    root = plan.relations[0].root
    only(root, "input", "names")
    losses = Losses(plan.version.producer)
    writer = PlanWriter(PlanFunctions(plan), losses, schema_of)
    return writer.statement(root.input, partial(_names, list(root.names)))


def _names(names: list[str], columns: Sequence[PlanTerm]) -> list[str]:
    """Return a name for each column; those of the fields of structs come between them."""
    found, place = [], 0
    for column in columns:
        found.append(names[place] if place < len(names) else "")
        place += 1 if column.type is None else types.names_of(column.type)
    if place != len(names) or not found:
        raise refusal(f"its root has {len(names)} names for columns that need {place}")
    if len(set(found)) < len(found):
        twice = next(each for each in found if found.count(each) > 1)
        raise refusal(f"two of its columns have the name {twice!r}; give each its own")
    return found
