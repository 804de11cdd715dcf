"""Models of a hub, against a server that speaks as much of its API as is needed."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from caraway_ai.local.hub import HubModel
from caraway_ai.providers.params import ModelParams
from caraway_ai.specs import ModelSpec
from caraway_core.errors import ModelError
from tests.kit.listening import listening

FILES = ("README.md", "m-q8_0.gguf", "m-Q4_K_M.gguf", "m-00001-of-00002.gguf")
COMMIT = "0" * 40


def hub() -> Starlette:
    async def listing(request: Request) -> Response:
        if "missing" in request.url.path:
            error = {"x-error-code": "RepoNotFound"}
            return JSONResponse({"error": "Repository not found"}, 404, headers=error)
        files = [] if "empty" in request.url.path else [{"rfilename": name} for name in FILES]
        return JSONResponse({"id": "o/m", "sha": COMMIT, "siblings": files})

    async def tree(request: Request) -> Response:
        if "missing" in request.url.path:
            error = {"x-error-code": "RepoNotFound"}
            return JSONResponse({"error": "Repository not found"}, 404, headers=error)
        names = [] if "empty" in request.url.path else FILES
        return JSONResponse([{"type": "file", "path": n, "oid": "1", "size": 4} for n in names])

    async def file(request: Request) -> Response:
        if request.path_params["name"] not in FILES:
            return JSONResponse({}, 404, headers={"x-error-code": "EntryNotFound"})
        headers = {"x-repo-commit": COMMIT, "etag": '"1"'}
        return Response(b"GGUF", headers=headers)

    return Starlette(
        routes=[
            Route("/api/models/{name:path}/tree/{revision}", tree),
            Route("/api/models/{name:path}", listing),
            Route("/{org}/{model}/resolve/{revision}/{name}", file, methods=["GET", "HEAD"]),
        ]
    )


def model(url: str, cache: Path, repository: str) -> HubModel:
    spec = ModelSpec("m", "huggingface", repository, {"endpoint": url}, cache_dir=cache)
    return HubModel(spec, ModelParams(spec), repository, None)


async def test_the_file_that_fits_best_is_fetched(tmp_path: Path) -> None:
    async with listening(hub()) as url:
        path = await asyncio.to_thread(model(url, tmp_path, "o/m").download, None)
        assert path.name == "m-Q4_K_M.gguf"
        assert path.read_bytes() == b"GGUF"
        path = await asyncio.to_thread(model(url, tmp_path, "o/m").download, "m-q8_0.gguf")
        assert path.name == "m-q8_0.gguf"
        told: list[str] = []
        other = model(url, tmp_path / "other", "o/m").download
        await asyncio.to_thread(other, "m-q8_0.gguf", told.append)
        assert told[-1].startswith("downloading: 0")
        for repository, name, words in (
            ("o/m", "other.gguf", "has no file 'other.gguf'"),
            ("o/empty", None, "has no GGUF file"),
            ("o/missing", None, "the hub has no model"),
        ):
            with pytest.raises(ModelError, match=words) as caught:
                await asyncio.to_thread(model(url, tmp_path, repository).download, name)
            assert caught.value.code == "model.not_found"


@pytest.mark.parametrize(
    "name", ["a/b/../../../../etc/x.gguf", "-a/b/x.gguf", "a--b/c/x.gguf", ".../../x.gguf",
             "a/b.git/x.gguf", f"a/{'b' * 200}/x.gguf", "-a/b"],
)  # fmt: skip
def test_a_name_that_no_hub_has_is_told(tmp_path: Path, name: str) -> None:
    spec = ModelSpec("m", "huggingface", f"huggingface.co/{name}",
                     {"endpoint": "http://127.0.0.1:9"}, cache_dir=tmp_path)  # fmt: skip
    found: Any = spec.build()
    with pytest.raises(ModelError, match="has a name that no hub has") as caught:
        found._checked_file()
    assert caught.value.type == "invalid"
    assert not list(tmp_path.rglob("*.gguf"))


def test_a_name_that_is_none_of_a_hub_is_refused() -> None:
    with pytest.raises(ModelError, match="no model of a hub"):
        ModelSpec("m", "huggingface", "just-a-name").build()
