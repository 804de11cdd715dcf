"""Lets other tasks of the loop run; requests inside the process do not yield by themselves."""

import asyncio


async def turn() -> None:
    """Give every ready task one turn."""
    await asyncio.sleep(0)
