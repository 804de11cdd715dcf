"""Forks projects: a second project with the same manifest and settings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from caraway_core.errors import ManifestError
from caraway_core.manifest.documents import document
from caraway_core.manifest.documents.document import Document
from caraway_core.manifest.rules import rules
from caraway_kube.resources import yaml_text
from caraway_management.domain import forks, names, refusals
from caraway_management.domain.refusals import RefusedError
from caraway_management.projects import editing, finding, manifests, repositories
from caraway_management.projects.editing import ProjectContext
from caraway_management.projects.finding import ProjectRow
from caraway_management.store.tables import Project, SecretLink

_COPIED = ("description", "visibility", "tags")


@dataclass(frozen=True, slots=True)
class ForkSource:
    """The manifest of a source, checked."""

    text: str
    state_location: str | None
    shared_state: tuple[str, ...]


async def read_text(project: Project, allowed: Sequence[str]) -> str:
    """Return the text of the manifest of a source: that of its repository, if it has one.

    Raises:
        RefusedError: it has none, or its repository cannot be read.
    """
    source = repositories.source_of(project)
    if source is None:
        if project.manifest is None:
            raise _no_manifest()
        return project.manifest
    try:
        text, _ = await repositories.fetch_text(source, allowed)
    except RefusedError as exc:
        if exc.code == "spicepod_missing":
            raise _no_manifest() from exc
        raise RefusedError(
            502, f"the repository of the source cannot be read: {exc.message}",
            "fork_source_repository_unreadable",
        ) from exc  # fmt: skip
    return text


def check(text: str) -> ForkSource:
    """Return what a fork needs of the manifest of its source. It may take a second.

    Raises:
        RefusedError: the manifest is not valid, or is not complete in itself.
    """
    try:
        if any(rules.references(_parsed(text))):
            raise RefusedError(
                422, "the manifest of the source loads other files; write out what they hold",
                "fork_source_loads_repository_files",
            )  # fmt: skip
        manifest = manifests.parse(text)
    except ManifestError as exc:
        raise manifests.refusal(exc, status=422, code="fork_source_spicepod_invalid") from exc
    return ForkSource(
        text, manifest.runtime.scheduler.state_location, tuple(forks.shared_state(manifest))
    )


def text_of(source: ForkSource, state_location: str | None) -> str:
    """Return the manifest of a fork, with a state location of its own if the source has one.

    Raises:
        RefusedError: the state location is not one that the fork may have.
    """
    forks.check_state_location(state_location, source.state_location)
    if state_location is None:
        return source.text
    content = _parsed(source.text).value
    forks.set_state_location(content, state_location)
    return yaml_text.dump(content)


async def fork(
    session: AsyncSession,
    around: ProjectContext,
    source: Project,
    name: str,
    placement: Mapping[str, object],
    manifest: str,
) -> Project:
    """Create a fork. It has settings and linked secrets of its source, and no secrets of its own.

    Raises:
        RefusedError: its name is taken, or it has no place.
    """
    if (source.region or source.cluster_name) and not any(placement.values()):
        raise refusals.invalid("name a region or a cluster for the fork", "fork_placement_required")
    key = names.key(names.check_project(name))
    taken = select(Project.id).where(Project.org_id == around.org.id, Project.name_key == key)
    if await session.scalar(taken) is not None:
        # Also that of a deleted project: a fork revives nothing.
        raise _name_unavailable(name)
    settings = {each: getattr(source, each) for each in _COPIED}
    try:
        project = await editing.create(
            session, around, name, {**settings, **placement, "manifest": manifest}
        )
    except RefusedError as exc:
        if exc.status == 409:
            raise _name_unavailable(name) from exc
        raise
    project.config = dict(source.config)
    project.forked_from = source.id
    links = select(SecretLink).where(SecretLink.project_id == source.id)
    for link in await session.scalars(links):
        session.add(
            SecretLink(project_id=project.id, secret_id=link.secret_id, created_at=around.now)
        )
    await session.flush()
    return project


async def list_forks(
    session: AsyncSession, source: Project, limit: int, offset: int
) -> Sequence[ProjectRow]:
    """Return a page of the forks of a project, in its organization."""
    query = select(*finding.LISTED).where(
        Project.org_id == source.org_id,
        Project.forked_from == source.id,
        Project.deleted_at.is_(None),
    )
    return (await session.execute(query.order_by(Project.id).limit(limit).offset(offset))).all()


def _parsed(text: str) -> Document:
    return document.parse(text, manifests.PATH)


def _no_manifest() -> RefusedError:
    return RefusedError(422, "the source has no manifest", "fork_source_has_no_spicepod")


def _name_unavailable(name: str) -> RefusedError:
    return refusals.conflict(
        f'App "{name}" already exists in this organization', "fork_name_unavailable"
    )
