"""A statement of several chunks, and what a job may leave."""

from tests.kit.deadlines import eventually
from tests.kit.job_schedulers import Site

NUMBERS = "SELECT value AS n FROM generate_series(1, 25000)"


async def nothing_is_left(place: Site) -> None:
    """Wait until no chunk is left: a job ends before its chunks are removed."""

    async def look() -> bool:
        return not list(place.results.glob("[!.]*"))

    await eventually(look, "no result is left")
