"""Imports without the garbage collector."""

import gc

import pytest

from caraway_core.loading.imports import uncollected


@pytest.fixture(autouse=True)
def collector() -> None:
    assert gc.isenabled()


def test_what_is_made_in_the_block_is_not_visited_later() -> None:
    before = gc.get_freeze_count()
    with uncollected():
        assert not gc.isenabled()
        made = [[number] for number in range(1000)]
    assert gc.isenabled()
    assert gc.get_freeze_count() >= before + len(made)


def test_the_collector_runs_again_after_an_import_that_failed() -> None:
    with pytest.raises(ImportError), uncollected():
        raise ImportError("nothing has this name")
    assert gc.isenabled()


def test_a_process_without_a_collector_gets_none() -> None:
    gc.disable()
    try:
        with uncollected():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
