"""`caraway package` and `caraway add`: packages of manifests, and manifests that depend on them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from caraway.cli.variables import setting
from caraway_core.errors import CarawayError

if TYPE_CHECKING:
    from caraway_core.packages.collecting import Package

FROM_HELP = "git:{org}/{repo}/{sha}/{path of the manifest}"
GitUrl = Annotated[
    str, setting("--git-url", "CARAWAY_GIT_URL", "The URL below which repositories are.")
]
Token = Annotated[
    str | None, setting("--git-token", "CARAWAY_GIT_TOKEN", "A token for private repositories.")
]
_GIT_URL = "https://github.com"
_MOST_FILE_BYTES = 64 * 1024 * 1024


def package(
    source: Annotated[str, typer.Argument(metavar="FROM", help=f"{FROM_HELP}, or a folder.")] = ".",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The zip file to write.")
    ] = None,
    git_url: GitUrl = _GIT_URL,
    git_token: Token = None,
) -> None:
    """Write a manifest and the files that it refers to as a zip file."""
    from caraway_core.packages import archives

    name, made = _made(source, git_url, git_token)
    file = output or Path(f"{name.rpartition('/')[2]}.zip")
    file.write_bytes(archives.zipped(made))
    print(f"wrote {file} ({_count(made)})")


def add(
    source: Annotated[str, typer.Argument(metavar="FROM", help=f"{FROM_HELP}, or a zip file.")],
    manifest: Annotated[
        Path, typer.Argument(metavar="MANIFEST", help="The manifest that will depend on it.")
    ] = Path("."),
    name: Annotated[
        str | None, typer.Option("--name", help="The name to install it under.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an installed package.")] = False,
    git_url: GitUrl = _GIT_URL,
    git_token: Token = None,
) -> None:
    """Install a package in `spicepods` and add it to the dependencies of MANIFEST."""
    from caraway_core.manifest.texts import places
    from caraway_core.packages import installing

    try:
        target = places.manifest_file(manifest)
    except ValueError as exc:
        raise CarawayError(f"{exc}; `caraway init` writes one") from exc
    given, made = _made(source, git_url, git_token)
    dependency = installing.install(made, name or given, target, replaces=force)
    print(f"wrote {target.parent / places.INSTALLED / (name or given)} ({_count(made)})")
    print(f"{target} depends on '{dependency}'")


def _made(text: str, git_url: str, token: str | None) -> "tuple[str, Package]":
    """Return a package and its name: of a repository, a folder, or a zip file."""
    import asyncio

    from caraway_core.manifest.texts import git_urls
    from caraway_core.packages import archives, folders, installing, making, sources

    try:
        url = git_urls.checked_git_url(git_url)
    except ValueError as exc:
        raise CarawayError(f"--git-url {exc}") from exc
    checked = sources.checked_token(token) if token else None
    if sources.is_source(text):
        source = sources.parse(text)
        return installing.name_of(source), asyncio.run(making.fetch(source, url, checked))
    path = Path(text)
    if path.suffix == ".zip" and path.is_file():
        if path.stat().st_size > _MOST_FILE_BYTES:
            raise CarawayError(f"'{path}' is too large for a package")
        return path.stem, archives.unzipped(path.read_bytes())
    try:
        made = asyncio.run(folders.of_folder(path, url, checked))
    except ValueError as exc:
        raise CarawayError(str(exc)) from exc
    folder = path if path.is_dir() else path.parent
    return folder.resolve().name, made


def _count(made: "Package") -> str:
    return "1 file" if len(made.files) == 1 else f"{len(made.files)} files"
