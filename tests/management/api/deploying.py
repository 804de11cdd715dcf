"""Reports a project as deployed."""

from caraway_management.secrets import api_keys
from caraway_management.store.tables import Project
from tests.kit.management import Installation

ENDPOINT = "http://127.0.0.1:8090"


def deploy(installation: Installation, id_: int, **fields: object) -> str:
    """Change a project as its deployment would; return the key of the service."""

    async def change(session: object) -> str:
        project = await session.get_one(Project, id_)  # type: ignore[attr-defined]
        for name, value in {"endpoint": ENDPOINT, **fields}.items():
            setattr(project, name, value)
        services = installation.services
        keys = await api_keys.make(session, services.sealer, services.now(), id_)  # type: ignore[arg-type]
        return keys[api_keys.OF_SERVICE]

    return installation.change(change)
