"""Checks the params of a dataset against its connector, and parses their values."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from caraway_core.errors import DatasetError
from caraway_core.loading import registry
from caraway_core.loading.declarations import Declaration
from caraway_core.tables import CsvDialect

_TRUTH = {"true": True, "false": False, "enabled": True, "disabled": False}
_COUNT = re.compile(r"[0-9]{1,18}")
_SECONDS = re.compile(r"[0-9]{1,12}(\.[0-9]{0,12})?|\.[0-9]{1,12}")
_ESCAPES = {"\\t": "\t", "\\0": "\0", "tab": "\t"}


@dataclass(frozen=True, slots=True)
class Params:
    """The params of one dataset, with typed access; invalid values raise DatasetError."""

    values: Mapping[str, str]

    def text(self, *names: str) -> str | None:
        """Return the first of these params that is not empty, or None."""
        return next((self.values[name] for name in names if self.values.get(name)), None)

    def flag(self, name: str, default: bool) -> bool:
        """Return a boolean param."""
        value = self.text(name)
        if value is None:
            return default
        if value.lower() not in _TRUTH:
            raise DatasetError("invalid", f"params.{name} is '{value}'; set it to true or false")
        return _TRUTH[value.lower()]

    def character(self, *names: str) -> str | None:
        """Return the first of these params that is set, as one ASCII character, or None."""
        name = next((name for name in names if self.values.get(name)), None)
        if name is None:
            return None
        value = _ESCAPES.get(self.values[name].lower(), self.values[name])
        if len(value) != 1 or not value.isascii():
            raise DatasetError("invalid", f"params.{name} is '{value}'; give one ASCII character")
        return value

    def count(self, *names: str) -> int | None:
        """Return the first of these params that is set, as a positive integer, or None."""
        name = next((name for name in names if self.values.get(name)), None)
        if name is None:
            return None
        value = self.values[name]
        if not _COUNT.fullmatch(value) or int(value) < 1:
            raise DatasetError("invalid", f"params.{name} is '{value}'; give a number above zero")
        return int(value)

    def seconds(self, name: str, default: float) -> float:
        """Return a duration in seconds, parsed from a text such as `30`, `30s`, `500ms` or `2m`."""
        value = self.text(name)
        if value is None:
            return default
        for suffix, factor in (("ms", 0.001), ("s", 1.0), ("m", 60.0), ("", 1.0)):
            digits = value.strip().removesuffix(suffix) if suffix else value.strip()
            if value.strip().endswith(suffix) and _SECONDS.fullmatch(digits):
                if float(digits) > 0:
                    return float(digits) * factor
        raise DatasetError("invalid", f"params.{name} is '{value}'; give a duration such as 30s")


def checked(
    connector: str, values: Mapping[str, str], known: Iterable[str] | None = None
) -> Params:
    """Reject params that the connector does not have; `known` overrides the known names.

    Raises:
        DatasetError: a param is unknown; the message suggests the nearest known name.
    """
    if known is None:
        declared = registry.SOURCES.declared(connector)
    else:
        declared = Declaration(params=frozenset(known))
    for name in values:
        if fault := registry.param_fault(connector, name, declared):
            raise DatasetError("invalid", fault)
    return Params(values)


def dialect(params: Params, is_tsv: bool) -> CsvDialect:
    """Return the CSV dialect of the params; `tsv_*` params take precedence for TSV files."""

    def names(name: str) -> tuple[str, ...]:
        return (f"tsv_{name}", f"csv_{name}") if is_tsv else (f"csv_{name}",)

    def flag(name: str, default: bool) -> bool:
        chosen = next((each for each in names(name) if params.text(each)), names(name)[-1])
        return params.flag(chosen, default)

    # TSV files are split at tabs even if csv_delimiter is set, because a folder may have both
    # kinds.
    delimiter = params.character("tsv_delimiter") if is_tsv else params.character("csv_delimiter")
    delimiter = delimiter or ("\t" if is_tsv else ",")
    quote = params.character(*names("quote")) or '"'
    if delimiter == quote or not {delimiter, quote}.isdisjoint("\r\n"):
        raise DatasetError(
            "invalid",
            f"{names('delimiter')[0]} and {names('quote')[0]} must be two characters, and none of "
            "them the end of a line",
        )
    decimal = params.character(*names("decimal_separator")) or "."
    if decimal not in ".," or decimal == delimiter:
        raise DatasetError(
            "invalid",
            f"{names('decimal_separator')[0]} is '{decimal}'; set it to `.` or `,`, and not to the "
            f"delimiter, which is {delimiter!r}",
        )
    return CsvDialect(
        has_header=flag("has_header", True),
        delimiter=delimiter,
        quote=quote,
        escape=params.character(*names("escape")),
        comment=params.character(*names("comment")),
        newlines_in_values=flag("newlines_in_values", True),
        null_regex=params.text(*names("null_regex")),
        decimal_separator=decimal,
    )
