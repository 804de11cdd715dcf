"""Connects projects to git repositories, and reads their manifests there."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from caraway_core.manifest.texts.places import MANIFEST_FILES
from caraway_core.packages import git
from caraway_core.packages.git import Checkout, GitError
from caraway_management.domain import project_rules, refusals, repositories
from caraway_management.projects import editing, manifests
from caraway_management.store.tables import Project


@dataclass(frozen=True, slots=True)
class Source:
    """A repository that a project is connected to."""

    repository: str
    root_directory: str
    production_branch: str

    def as_json(self) -> dict[str, Any]:
        return {"repository": self.repository, "root_directory": self.root_directory}


@dataclass(frozen=True, slots=True)
class Fetched:
    """A manifest of a commit."""

    source: Source
    manifest: str
    commit_sha: str
    commit_message: str


def source_of(project: Project) -> Source | None:
    """Return the repository that a project is connected to."""
    if project.repository is None or project.production_branch is None:
        return None
    return Source(
        project.repository["repository"],
        project.repository["root_directory"],
        project.production_branch,
    )


async def find(
    repository: str, root_directory: str, branch: str | None, allowed: Sequence[str]
) -> Source:
    """Return a repository to connect to, with its default branch if none is named.

    Raises:
        RefusedError: it cannot be used, does not exist, or has no such branch.
    """
    url = repositories.check_url(repository, allowed)
    root = repositories.check_root(root_directory)
    if branch is not None:
        project_rules.check_branch(branch)
    try:
        found = await git.find_branch(url, branch)
    except GitError as exc:
        raise _unreadable(exc) from exc
    if found is None:
        named = f"the branch '{branch}'" if branch else "a default branch"
        raise repositories.refused("branch_not_found", f"the repository has not {named}")
    return Source(url, root, project_rules.check_branch(found))


async def fetch(source: Source, allowed: Sequence[str], commit_sha: str | None = None) -> Fetched:
    """Return the manifest at the head of the branch, or of a commit, as its valid text.

    Raises:
        RefusedError: the repository cannot be read, or has no valid manifest.
    """
    text, checkout = await fetch_text(source, allowed, commit_sha)
    manifest = await manifests.check_apart(text)
    return Fetched(source, manifest, checkout.commit_sha, checkout.commit_message)


async def fetch_text(
    source: Source, allowed: Sequence[str], commit_sha: str | None = None
) -> tuple[str, Checkout]:
    """Return the text of the manifest, which may be wrong, and its commit.

    Raises:
        RefusedError: the repository cannot be read, or has no manifest.
    """
    # It may not be allowed any more.
    url = repositories.check_url(source.repository, allowed)
    ref = f"refs/heads/{source.production_branch}"
    if commit_sha is not None:
        ref = repositories.check_commit(commit_sha)
    try:
        async with git.fetched(url, ref) as checkout:
            for name in MANIFEST_FILES:
                path = f"{source.root_directory}/{name}" if source.root_directory else name
                if (content := await checkout.read(path, manifests.MOST_BYTES)) is not None:
                    return content.decode(), checkout
    except GitError as exc:
        raise _unreadable(exc) from exc
    except UnicodeDecodeError as exc:
        raise refusals.invalid_field("manifest", "is not UTF-8", "invalid_manifest") from exc
    except ValueError as exc:
        raise refusals.invalid_field("manifest", str(exc), "invalid_manifest") from exc
    folder = f"the folder '{source.root_directory}'" if source.root_directory else "the repository"
    raise repositories.refused(
        "spicepod_missing", f"{folder} has no manifest; add a {MANIFEST_FILES[0]}"
    )


async def connect(session: AsyncSession, now: datetime, project: Project, fetched: Fetched) -> None:
    """Connect a project: its manifest comes from the repository from now on.

    Raises:
        RefusedError: another project of the organization has the same folder and branch.
    """
    source = fetched.source
    query = select(Project).where(
        Project.org_id == project.org_id, Project.deleted_at.is_(None), Project.id != project.id
    )
    for other in await session.scalars(query.where(Project.repository.is_not(None))):
        if source_of(other) == source:
            raise repositories.refused(
                "root_directory_conflict", f"the project '{other.name}' has the same folder", 409
            )
    project.repository = source.as_json()
    project.production_branch = source.production_branch
    take(project, now, fetched)


def take(project: Project, now: datetime, fetched: Fetched) -> None:
    """Take the manifest of a commit into a connected project.

    Raises:
        RefusedError: the project is connected to something else by now.
    """
    if source_of(project) != fetched.source:
        raise refusals.conflict("the project changed meanwhile; try again", "project_changed")
    assert project.repository is not None
    project.repository = {
        **project.repository,
        "commit_sha": fetched.commit_sha,
        "commit_message": fetched.commit_message,
        "synchronized_at": now.isoformat(),
    }
    project.manifest = fetched.manifest
    editing.touch(project, now)


def disconnect(project: Project, now: datetime) -> None:
    """Disconnect a project. Its manifest stays as it is."""
    if project.repository is not None:
        project.repository = None
        editing.touch(project, now)


def _unreadable(exc: GitError) -> refusals.RefusedError:
    match exc.failure:
        case "no_commit":
            return repositories.refused("branch_not_found", "the branch or commit does not exist")
        case "no_repository":
            return repositories.refused(
                "repository_not_found", "does not exist, or this installation may not read it", 404
            )
        case "no_git":
            message = "cannot be read: this installation has no command git; install it"
        case "redirected":
            message = "redirects to another place, which is not followed; name that one"
        case "too_large":
            message = "is too large to be read, or is damaged"
        case _:
            message = "does not answer; try again later"
    return repositories.refused("github_unavailable", message, 502)
