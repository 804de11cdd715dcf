"""The cases of the corpus, with the order that each promises for its rows."""

import pyarrow as pa

from caraway_core.errors import QueryError
from tests.differential import loading
from tests.differential.asking import Pair
from tests.differential.comparing import Order, Outcome
from tests.differential.loading import Case

CASES = loading.cases()
ANSWERED = [case for case in CASES if not case.error]


def ids(case: Case) -> str:
    return f"{case.subject}: {case.name}"


def order(case: Case, pair: Pair) -> Order:
    """Return the order that the headers of a case describe."""
    whole = pair.expected(case.whole) if case.whole else None
    assert not isinstance(whole, QueryError), whole
    kind, *places = case.order.split()
    match kind:
        case "none" | "total":
            return Order(kind, whole=whole)
        case "keys":
            return Order("keys", tuple(int(place) - 1 for place in places), whole)
        case _:
            raise ValueError(f"'{case.name}': unknown order '{case.order}'")


def answered(outcome: Outcome) -> pa.Table:
    assert not isinstance(outcome, QueryError), outcome
    return outcome
