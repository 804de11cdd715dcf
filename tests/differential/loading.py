"""Reads the corpus: files of statements with comments that describe the expected answer.

-- name: the subject of the statement, unique in the corpus
-- order: none | total | keys 1 2     (sorted columns, counted from 1; default: none)
-- whole: SELECT ...                  (all rows of which the statement keeps some)
-- error: InvalidQueryError           (the expected error)
SELECT ...;
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

CORPUS = Path(__file__).parent / "corpus"
_HEADER = re.compile(r"-- (name|order|whole|error): (.*)")


@dataclass(frozen=True, slots=True)
class Case:
    """A statement of the corpus."""

    subject: str
    name: str
    sql: str
    order: str = "none"
    whole: str | None = None
    error: str | None = None


def cases() -> list[Case]:
    """Return the corpus, file by file.

    Raises:
        ValueError: a header is unknown, or a statement has no name.
    """
    return [case for path in sorted(CORPUS.glob("*.sql")) for case in _of_file(path)]


def _of_file(path: Path) -> Iterator[Case]:
    for block in re.split(r"\n(?=-- name: )", "\n" + path.read_text())[1:]:
        headers: dict[str, str] = {}
        lines = block.strip().splitlines()
        while lines and lines[0].startswith("-- "):
            line = lines.pop(0)
            match = _HEADER.fullmatch(line)
            if not match or match[1] in headers:
                raise ValueError(f"{path.name}: unknown or repeated header '{line}'")
            headers[match[1]] = match[2]
        sql = "\n".join(lines).strip().removesuffix(";")
        if not sql:
            raise ValueError(f"{path.name}: '{headers['name']}' has no statement")
        yield Case(path.stem, sql=sql, **headers)
