"""Datasets of a GitHub repository: `from: github:github.com/OWNER/REPOSITORY/issues`."""

import re
from dataclasses import replace

import pyarrow as pa

from caraway_core.errors import DatasetError
from caraway_core.protocols.sources import SourceCapabilities, SourceRequest
from caraway_core.tables.scanners import RowRequest
from caraway_plugins.sources import params, schemas
from caraway_plugins.sources.api import limiting
from caraway_plugins.sources.api.calls import ApiCall
from caraway_plugins.sources.api.sending import ApiClient
from caraway_plugins.sources.api.table import ApiPages, ApiTable
from caraway_plugins.sources.github import declared, files, lists
from caraway_plugins.sources.github.files import FilePages
from caraway_plugins.sources.github.lists import LISTS, ListPages
from caraway_plugins.sources.params import Params

_ENDPOINT = "https://api.github.com"
_PATH = re.compile(
    r"(?://)?(?:github\.com/)?(?P<owner>[\w.-]+)/(?P<repository>[\w.-]+)/(?P<kind>[a-z]+)"
    r"(?:/(?P<ref>[\w./-]+))?"
)


class GithubSource:
    """A list or the files of a repository."""

    declaration = declared.GITHUB
    capabilities = SourceCapabilities(projection=True, filters=True, limit=True)

    def resolve(self, request: SourceRequest) -> ApiTable:
        known = params.checked(request.connector, request.params)
        pages, schema = _pages(request, known)
        limits = replace(limiting.limits_of(request, known), secret_params="github_token")
        client = ApiClient(limits)
        try:
            # The columns are known, so this request finds out whether the repository can be read.
            call = pages.first(RowRequest(schema.names[:1], limit=1))
            pages.rows(call, client.ask(call))
        finally:
            client.close()
        return ApiTable(schemas.overridden(schema, request.declared), pages, limits)

    def fingerprint(self, request: SourceRequest) -> str | None:
        return None


def _pages(request: SourceRequest, known: Params) -> tuple[ApiPages, pa.Schema]:
    match = _PATH.fullmatch(request.path)
    if match is None or match["kind"] not in (*LISTS, "files"):
        raise _invalid(
            request,
            f"'github:{request.path}' names no table; write 'github:github.com/owner/repository/' "
            f"and one of {', '.join(LISTS)} or files/branch",
        )
    owner, repository, kind, ref = match.group("owner", "repository", "kind", "ref")
    if {".", ".."} & {owner, repository, *(ref or "").split("/")}:
        raise _invalid(request, f"'github:{request.path}' has a part of dots")
    if (kind == "files") != bool(ref):
        raise _invalid(request, "only 'files' has a branch, tag or commit after it, and needs it")
    if known.text("github_query_mode") not in (None, "auto", "search"):
        raise _invalid(request, "params.github_query_mode is auto or search")
    include = known.text("include")
    if include and kind != "files":
        raise _invalid(request, "params.include is for files only")
    endpoint = (known.text("github_endpoint") or _ENDPOINT).rstrip("/")
    headers = _headers(known)
    if kind == "files":
        patterns = tuple(each.strip() for each in (include or "").split(";") if each.strip())
        call = ApiCall(endpoint, endpoint, headers)
        return FilePages(call, owner, repository, ref, patterns), files.SCHEMA
    url = f"{endpoint.removesuffix('/v3')}/graphql"
    call = ApiCall(url, url, headers | {"content-type": "application/json"}, body="")
    most = limiting.most_pages(known)
    return ListPages(call, owner, repository, kind, most), lists.LISTS[kind].schema


def _headers(known: Params) -> dict[str, str]:
    headers = {"accept": "application/vnd.github+json", "x-github-api-version": "2022-11-28"}
    if token := known.text("github_token"):
        headers["authorization"] = f"Bearer {token}"
    return headers


def _invalid(request: SourceRequest, message: str) -> DatasetError:
    return DatasetError("invalid", f"dataset '{request.name}': {message}")
