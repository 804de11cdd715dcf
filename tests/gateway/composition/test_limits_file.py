"""The file with the limits, followed while a runtime serves."""

import logging
import os
from dataclasses import replace
from pathlib import Path

import pytest

from caraway_gateway.composition.limits_file import LimitsFile
from tests.kit.runtime import Running, running


def in_force(runtime: Running) -> tuple[float | None, float | None, float | None, int | None]:
    services = runtime.services
    return (
        services.limits.bucket.rate,
        services.limits.request_timeout_s,
        services.queries._timeouts.effective_s,
        services.queries.admission.max_running,
    )


MANIFEST = "runtime: {query: {timeout: 20s, max_concurrent_queries: 6}}\n"


async def test_lower_of_manifest_and_limits_counts(tmp_path: Path) -> None:
    file = tmp_path / "limits.yaml"
    async with running(tmp_path, MANIFEST) as runtime:
        following = LimitsFile(file, runtime.services)
        for text, expected in [
            ("{}", (None, None, 20.0, 6)),
            ("{api_rps: 7, request_timeout_secs: 9}", (7, 9, 20.0, 6)),
            ("{sql_query_timeout_secs: 5, sql_concurrent_queries: 2}", (None, None, 5, 2)),
            ("{sql_query_timeout_secs: 50, sql_concurrent_queries: 20}", (None, None, 20.0, 6)),
            ("{api_rps: -1}", (None, None, 20.0, 6)),
        ]:
            file.write_text(text)
            await following.look()
            assert in_force(runtime) == expected, text


async def test_schedulers_that_come_and_go_change_the_share(tmp_path: Path) -> None:
    file = tmp_path / "limits.yaml"
    file.write_text("{api_rps: 9, sql_concurrent_queries: 6}")
    async with running(tmp_path, "runtime: {query: {max_concurrent_queries: 0}}\n") as runtime:
        schedulers = [1]
        services = replace(runtime.services, scheduler_count=lambda: schedulers[0])
        following = LimitsFile(file, services)
        for count, expected in [(1, (9, 6)), (3, (3, 2)), (2, (4.5, 3)), (0, (9, 6))]:
            schedulers[0] = count
            await following.look()
            assert (in_force(runtime)[0], in_force(runtime)[3]) == expected


async def test_broken_file_keeps_the_last_good_one_and_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "limits.yaml"
    file.write_text("api_rps: 7")
    async with running(tmp_path, MANIFEST) as runtime:
        following = LimitsFile(file, runtime.services)
        await following.look()
        with caplog.at_level(logging.ERROR):
            for text in ("api_rps: lots", "api_rps: lots", "{", "x" * 70_000):
                file.write_text(text)
                await following.look()
                assert in_force(runtime)[0] == 7
            file.write_bytes(b"\xff\xfe")
            await following.look()
            file.unlink()
            await following.look()
            await following.look()
        assert in_force(runtime)[0] == 7
        told = [str(record.__dict__["reason"]) for record in caplog.records]
        assert len(told) == 5
        assert told[0].startswith("'api_rps' is 'lots'")
        assert told[-1] == "it cannot be read: No such file or directory"
        caplog.clear()
        file.write_text("api_rps: 8")
        await following.look()
        assert in_force(runtime)[0] == 8 and not caplog.records


async def test_file_that_is_missing_at_first_limits_nothing(tmp_path: Path) -> None:
    async with running(tmp_path, MANIFEST) as runtime:
        following = LimitsFile(tmp_path / "limits.yaml", runtime.services)
        await following.look()
        assert in_force(runtime) == (None, None, 20.0, 6)


async def test_config_map_that_is_swapped_beneath_its_link_is_seen(tmp_path: Path) -> None:
    for number in (1, 2):
        (tmp_path / f"v{number}").mkdir()
        (tmp_path / f"v{number}" / "limits.json").write_text(f'{{"api_rps": {number}}}')
    (tmp_path / "..data").symlink_to("v1")
    (tmp_path / "limits.json").symlink_to("..data/limits.json")
    async with running(tmp_path, MANIFEST) as runtime:
        following = LimitsFile(tmp_path / "limits.json", runtime.services)
        await following.look()
        assert in_force(runtime)[0] == 1
        (tmp_path / "next").symlink_to("v2")
        os.rename(tmp_path / "next", tmp_path / "..data")
        await following.look()
        assert in_force(runtime)[0] == 2


async def test_unknown_limits_are_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "limits.yaml"
    file.write_text("api_rsp: 7")
    async with running(tmp_path, MANIFEST) as runtime:
        with caplog.at_level(logging.WARNING, "caraway_scheduler"):
            await LimitsFile(file, runtime.services).look()
    assert [record.__dict__.get("keys") for record in caplog.records] == [["api_rsp"]]
