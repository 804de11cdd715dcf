"""Reactions to rows: the query that is run, when its rows match, and what notices show.

Only in Caraway.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from caraway_management.domain import monitors, names, refusals
from caraway_management.domain.monitoring import Measured
from caraway_management.domain.monitors import LONGEST_SUSTAIN_S, Spec

ROW_MATCH, QUERY = "dataset_row_match", "dataset_query"
KINDS = (ROW_MATCH, QUERY)
MOST_ROWS = 100
"""Rows that a query returns at most; more are not counted."""
MARK = "caraway:reactions"
"""Statements of this service have it in a comment: they are not events of reactions."""
LATE = "the other queries of the project took too long; make them do less"
MOST_SLOW = 10
"""Rounds in a row in which a query may be too slow, before its reaction is suspended."""
SUSPENDED = (
    f"suspended: the query did not finish in time {MOST_SLOW} times in a row; make it do less, "
    "then enable the reaction again"
)
PROBE = f"SELECT /* {MARK} */ 1"
"""A statement that every runtime answers at once."""
FIELDS: Mapping[str, frozenset[str]] = {
    ROW_MATCH: frozenset({"dataset", "where", "minRows", "sustainSecs"}),
    QUERY: frozenset({"query", "minRows", "sustainSecs"}),
}
_MOST_SHOWN, _MOST_COLUMNS, _MOST_CHARACTERS = 10, 20, 200
_MOST_SQL, _MOST_REASON = 8_192, 300
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_NO_SQL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def read_spec(kind: str, values: Mapping[str, object]) -> dict[str, object]:
    """Return which rows a reaction matches.

    Raises:
        RefusedError: a value is missing, or does not fit.
    """
    spec: dict[str, Any] = {}
    if kind == ROW_MATCH:
        spec["dataset"] = names.check_text(_given(values, "dataset"), "spec.dataset", 255)
        spec["where"] = _check_sql(_given(values, "where"), "spec.where")
    else:
        spec["query"] = _check_sql(_given(values, "query"), "spec.query")
    spec["minRows"] = values.get("minRows", 1)
    if not 1 <= spec["minRows"] <= MOST_ROWS:
        raise refusals.invalid_field("spec.minRows", f"must be 1 to {MOST_ROWS}")
    spec["sustainSecs"] = values.get("sustainSecs", 0)
    if not 0 <= spec["sustainSecs"] <= LONGEST_SUSTAIN_S:
        raise refusals.invalid_field("spec.sustainSecs", f"must be 0 to {LONGEST_SUSTAIN_S}")
    return spec


def condition(spec: Mapping[str, Any]) -> Spec:
    """Return the condition on the number of rows: reactions to rows are judged as monitors are."""
    severity: monitors.Severity = spec["severity"]
    return Spec("GEQ", spec["minRows"], sustain_s=spec["sustainSecs"], severity=severity)


def statement(kind: str, spec: Mapping[str, Any]) -> str:
    """Return the statement that reads the rows.

    What a user wrote is inside parentheses, where a statement that writes is a syntax error; the
    runtime takes one statement at a time. Its last line may be a comment.
    """
    if kind == ROW_MATCH:
        parts = (part.replace('"', '""') for part in spec["dataset"].split("."))
        table = ".".join(f'"{part}"' for part in parts)
        rows = f"{table} WHERE (\n{spec['where']}\n)"
    else:
        rows = f"(\n{spec['query']}\n) AS watched"
    return f"SELECT /* {MARK} */ * FROM {rows} LIMIT {MOST_ROWS}"


def measure(rows: Sequence[Mapping[str, object]]) -> Measured:
    """Return the number of rows, and what notices show of them."""
    shown = [_shown(row) for row in rows[:_MOST_SHOWN]]
    return Measured(float(min(len(rows), MOST_ROWS)), details={"rows": shown})


def refused(text: str) -> Measured:
    """Return that there is no value, as the runtime refused the query with a text."""
    said = " ".join(_CONTROL.sub(" ", _unicode(text)).split())
    return Measured(None, f"the runtime refused the query: {said[:_MOST_REASON]}")


def summary(kind: str, spec: Mapping[str, object], count: float) -> str:
    """Return how many rows there are, in a sentence."""
    number = f"{count:g} row{'' if count == 1 else 's'}"
    if count >= MOST_ROWS:
        number += " or more"
    if kind == QUERY:
        return f"The query returns {number}."
    return f"{number} of dataset '{spec['dataset']}' match{'es' if count == 1 else ''}."


def _given(values: Mapping[str, object], field: str) -> str:
    if (text := values.get(field)) is None:
        raise refusals.invalid_field(f"spec.{field}", "is missing")
    return str(text)


def _check_sql(text: str, field: str) -> str:
    if not text.strip():
        raise refusals.invalid_field(field, "must not be blank")
    if len(text) > _MOST_SQL:
        raise refusals.invalid_field(field, f"must have at most {_MOST_SQL} characters")
    if _NO_SQL.search(text):
        raise refusals.invalid_field(field, "must not contain control characters")
    return text


def _shown(row: Mapping[str, object]) -> dict[str, object]:
    columns = list(row.items())[:_MOST_COLUMNS]
    return {_unicode(name)[:_MOST_CHARACTERS]: _value(value) for name, value in columns}


def _value(value: object) -> Any:
    if value is None or isinstance(value, bool):
        return value
    text = value if isinstance(value, str) else json.dumps(value)
    if isinstance(value, int | float) and len(text) <= 25 and text.lower() == text:
        return value
    return _unicode(text)[:_MOST_CHARACTERS]


def _unicode(text: str) -> str:
    """Return a text that can be encoded: JSON may have halves of characters."""
    return text.encode(errors="replace").decode()
