"""Infers the columns of a delimited file from its first records."""

import csv
import io
import re
from collections.abc import Collection, Iterator, Sequence
from datetime import date
from decimal import Decimal

import pyarrow as pa

from caraway_core.errors import DatasetError
from caraway_core.sqltext import identifiers
from caraway_core.tables import CsvDialect
from caraway_plugins.sources import schemas
from caraway_plugins.sources.samples import FileSample

# The same texts as the engine's reader accepts for each type, narrowest type first. `\d` would
# also match digits of other scripts.
_DAY = r"[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"
_STAMP = _DAY + r"[T ](?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
_ZONE = r"(?:Z|[+-](?:[01][0-9]|2[0-3]):?[0-5][0-9])?"
_FLOAT = re.compile(r"-?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+)(?:[eE][-+]?[0-9]+)?")
_TYPES: tuple[tuple[re.Pattern[str], pa.DataType], ...] = (
    (re.compile(r"-?[0-9]{1,18}"), pa.int64()),
    (_FLOAT, pa.float64()),
    (re.compile(r"true|false", re.IGNORECASE), pa.bool_()),
    (re.compile(_DAY), pa.date32()),
    (re.compile(_STAMP + r"(?:\.[0-9]{1,6})?" + _ZONE), pa.timestamp("us")),
    (re.compile(_STAMP + r"\.[0-9]{7,9}" + _ZONE), pa.timestamp("ns")),
)
_GROUPED = re.compile(r"-?[0-9]{1,3}(?:\.[0-9]{3})+(?:,[0-9]*)?")
_NUMBERS = (pa.null(), pa.int64(), pa.float64())
_LONG_INTEGER = re.compile(r"-?[0-9]{19,}")
_NANOSECONDS = ("1677-09-22", "2262-04-11")
"""The first and last whole days that 64 bits of nanoseconds can say."""
_LEAST, _MOST = Decimal(-(2**63)), Decimal(2**63 - 1)
_MOMENTS = (pa.date32(), pa.timestamp("us"), pa.timestamp("ns"))


def infer(
    sample: FileSample,
    dialect: CsvDialect,
    max_records: int | None,
    title: str,
    *,
    is_normalized: bool = False,
    declared: Collection[str] = (),
) -> pa.Schema:
    """Return the columns in file order; the type is `null` where no value was seen.

    `declared` are the columns whose types do not come from the file.

    Raises:
        DatasetError: records differ in length, the header repeats a name, or numbers are ambiguous.
    """
    records = _records(sample, dialect)
    first = next(records, None)
    if first is None:
        return pa.schema([])
    names = _names(first, dialect.has_header, is_normalized, title)
    types: list[pa.DataType] = [pa.null()] * len(names)
    has_comma, pointed = dialect.decimal_separator == ",", dict[int, str]()
    null = _compiled(dialect.null_regex).search if dialect.null_regex else None
    seen = 0
    if not dialect.has_header:
        records = _chain(first, records)
    for record in records:
        if len(record) != len(names):
            raise DatasetError(
                "invalid",
                f"record {seen + 1} of '{title}' has {len(record)} fields and the file has "
                f"{len(names)} columns; check csv_delimiter and csv_quote",
            )
        for index, text in enumerate(record):
            if text and types[index] != pa.string() and not (null and null(text)):
                if has_comma and _has_points(text):
                    pointed.setdefault(index, text)
                else:
                    types[index] = _united(types[index], _type(text, has_comma))
        seen += 1
        if max_records and seen >= max_records:
            break
    for index, text in pointed.items():
        if types[index] in _NUMBERS and names[index] not in declared:
            raise _ambiguous(names[index], text, title)
        types[index] = pa.string()
    return pa.schema([pa.field(name, type_) for name, type_ in zip(names, types, strict=True)])


def _has_points(text: str) -> bool:
    """Return whether a number has points: `1.234` may be 1234, or from a file with both marks."""
    return "." in text and bool(_FLOAT.fullmatch(text) or _GROUPED.fullmatch(text))


def _ambiguous(name: str, text: str, title: str) -> DatasetError:
    return DatasetError(
        "schema",
        f"column '{name}' of '{title}' has '{text}': with a decimal comma, points in numbers are "
        "ambiguous; remove them from the file, or declare the column as text under `columns`",
    )


def _compiled(null_regex: str) -> re.Pattern[str]:
    try:
        return re.compile(null_regex)
    except (re.error, RecursionError, OverflowError) as exc:
        raise DatasetError(
            "invalid", f"params.csv_null_regex is not a regular expression: {exc}"
        ) from exc


def _records(sample: FileSample, dialect: CsvDialect) -> Iterator[list[str]]:
    reader = csv.reader(
        io.StringIO(sample.text, newline=""),
        delimiter=dialect.delimiter,
        quotechar=dialect.quote,
        escapechar=dialect.escape,
        doublequote=dialect.escape is None,
    )
    held: list[str] | None = None
    while True:
        try:
            record = next(reader)
        except StopIteration:
            break
        except csv.Error:  # The field exceeds the module's limit; the records before it are enough.
            return
        if not record or (dialect.comment and record[0].startswith(dialect.comment)):
            continue
        if held is not None:
            yield held
        held = record
    # The last record of a sample that is shorter than the file may be cut off.
    if held is not None and sample.is_whole:
        yield held


def _chain(first: list[str], rest: Iterator[list[str]]) -> Iterator[list[str]]:
    yield first
    yield from rest


def _names(first: list[str], has_header: bool, is_normalized: bool, title: str) -> Sequence[str]:
    if not has_header:
        return [f"column_{number}" for number in range(1, len(first) + 1)]
    if is_normalized:
        return identifiers.normalized(first)
    repeated = {name for name in first if first.count(name) > 1}
    if repeated:
        raise DatasetError("schema", f"the header of '{title}' repeats {sorted(repeated)}")
    return first


def _type(text: str, has_comma: bool) -> pa.DataType:
    if has_comma and "," in text:
        return pa.float64() if _FLOAT.fullmatch(text.replace(",", ".")) else pa.string()
    if _LONG_INTEGER.fullmatch(text):
        return pa.int64() if _LEAST <= Decimal(text) <= _MOST else pa.string()
    found = next((type_ for regex, type_ in _TYPES if regex.fullmatch(text)), pa.string())
    if found in _MOMENTS and not _is_day(text[:10]):
        return pa.string()
    if found == pa.timestamp("ns") and not _NANOSECONDS[0] <= text[:10] < _NANOSECONDS[1]:
        return pa.string()
    return found


def _is_day(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _united(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    return schemas.widened(left, right) or pa.string()
