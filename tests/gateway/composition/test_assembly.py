"""The parts of a scheduler."""

from dataclasses import FrozenInstanceError, fields
from pathlib import Path
from typing import Any

import pytest

from caraway_gateway.services import Services
from tests.kit.runtime import running

OPTIONAL = {"keyring", "operating"}


async def test_services_are_built_once_and_hold_every_part_once(tmp_path: Path) -> None:
    async with running(tmp_path, "") as runtime:
        services: Any = runtime.services
        parts = {field.name: getattr(services, field.name) for field in fields(Services)}
        assert {name for name, part in parts.items() if part is None} <= OPTIONAL
        objects = [id(part) for part in parts.values() if hasattr(part, "__dict__")]
        assert len(objects) == len(set(objects))
        with pytest.raises(FrozenInstanceError):
            services.catalog = None


async def test_catalog_and_accelerations_know_each_other(tmp_path: Path) -> None:
    async with running(tmp_path, "") as runtime:
        services = runtime.services
        assert services.accelerations.catalog is services.catalog
        assert services.catalog._accelerator is services.accelerations
