"""The messages of the terminal about datasets that are ready, fail, or are still being loaded."""

import io
from pathlib import Path

from caraway_core.errors import DatasetError
from caraway_core.manifest import Dataset
from caraway_core.manifest.values.acceleration import Acceleration
from caraway_gateway.composition.announcing import Announcer
from caraway_scheduler.catalog.states import DatasetState


def state(acceleration: Acceleration | None = None) -> DatasetState:
    return DatasetState(Dataset("t", "file:t", "file", "t", Path("/"), acceleration=acceleration))


def lines(out: io.StringIO) -> list[str]:
    return out.getvalue().splitlines()


def test_rows_that_are_being_loaded_are_not_said_to_be_there() -> None:
    out = io.StringIO()
    announcer = Announcer(out)
    accelerated = state(Acceleration())
    announcer.progress(accelerated)
    assert lines(out)[-1].endswith("its rows are being loaded")
    announcer.ready({"HTTP": "http://here"}, 0, loading=1)
    assert "Caraway is up, 1 being loaded in" in out.getvalue()


def test_a_source_is_told_of_once_however_its_rows_stand() -> None:
    out = io.StringIO()
    announcer = Announcer(out)
    accelerated = state(Acceleration())
    for status in ("initializing", "refreshing", "ready"):
        accelerated.status = status
        announcer.progress(accelerated)
    assert len(lines(out)) == 1
    accelerated.error = DatasetError("not_found", "'t' is not there")
    announcer.progress(accelerated)
    assert lines(out)[-1].endswith("'t' is not there")


def test_others_are_there_when_they_are_loaded() -> None:
    out = io.StringIO()
    announcer = Announcer(out)
    plain = state()
    plain.status = "ready"
    announcer.progress(plain)
    assert "being loaded" not in out.getvalue()
    announcer.ready({"HTTP": "http://here"}, 0)
    assert "Caraway is ready in" in out.getvalue()


def test_the_address_of_the_console_comes_first() -> None:
    out = io.StringIO()
    Announcer(out).ready({"HTTP": "http://here", "Flight": "grpc://here"}, 0)
    addresses = [line for line in lines(out) if "://here" in line]
    assert addresses[0].split() == ["Console", "http://here/"]
    out = io.StringIO()
    Announcer(out).ready({"HTTP": "http://here"}, 0, has_console=False)
    assert "Console" not in out.getvalue()
