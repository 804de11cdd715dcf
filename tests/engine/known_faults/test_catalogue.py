"""Each fault says what shows it, where it is reported and what ends it; the docs list them."""

import re
from importlib.metadata import version
from pathlib import Path

import pytest

from caraway_engine.known_faults.catalogue import FAULTS
from caraway_engine.known_faults.known_fault import KnownFault
from tests.engine.known_faults.cases import CASES
from tests.kit import written_docs

ROOT = Path(__file__).parents[3]
SUBJECT = re.compile(r"(datafusion|datafusion-sqlparser-rs)#[1-9]\d*")


def names(fault: KnownFault) -> str:
    return fault.name


@pytest.mark.parametrize("fault", FAULTS, ids=names)
def test_its_statement_is_the_shortest_case(fault: KnownFault) -> None:
    if fault.shown_in:
        assert (ROOT / fault.shown_in).is_file()
        return
    statements = [case.sql for case in CASES if case.fault == fault.name]
    assert fault.statement in statements
    assert len(fault.statement) == min(map(len, statements))


@pytest.mark.parametrize("fault", FAULTS, ids=names)
def test_it_names_its_issues_and_the_version_of_today(fault: KnownFault) -> None:
    """After an upgrade, add the version: `test_faults` says which faults are still there."""
    assert all(SUBJECT.fullmatch(each) for each in fault.upstream)
    assert not fault.fixed_by or SUBJECT.fullmatch(fault.fixed_by)
    assert fault.seen_in[-1] == version("datafusion")


def test_names_and_sentences_occur_once() -> None:
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
    assert len({fault.sentence for fault in FAULTS}) == len(FAULTS)


def test_the_docs_list_every_fault() -> None:
    rows: list[tuple[str, ...]] = [
        ("fault", "smallest statement", "Caraway", "upstream", "seen in", "ends with")
    ]
    rows += [_row(fault) for fault in FAULTS]
    written_docs.check("reference/sql-limits.md", "faults", written_docs.table(*rows))


def _row(fault: KnownFault) -> tuple[str, ...]:
    if fault.fixed_by:
        end = f"a release with {fault.fixed_by}"
    else:
        end = f"a release that closes {fault.upstream[0]}" if fault.upstream else "not reported"
    statement = fault.statement.replace("|", r"\|")
    return (
        fault.sentence.replace("|", r"\|"),
        f"`{statement}`",
        fault.remedy.value,
        ", ".join(fault.upstream) or fault.fixed_by or "none found",
        ", ".join(fault.seen_in),
        end,
    )
