"""The files of a branch, tag or commit of a repository, over GitHub's REST API."""

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from caraway_core.errors import DatasetError
from caraway_core.tables.scanners import RowRequest
from caraway_plugins.sources import listing
from caraway_plugins.sources.api import pointers, table
from caraway_plugins.sources.api.calls import ApiCall, ApiPage

SCHEMA = pa.schema(
    [
        ("name", pa.string()),
        ("path", pa.string()),
        ("size", pa.int64()),
        ("sha", pa.string()),
        ("mode", pa.string()),
        ("url", pa.string()),
        ("download_url", pa.string()),
        ("content", pa.string()),
    ]
)
_RAW = "https://raw.githubusercontent.com"


@dataclass(frozen=True, slots=True)
class FileCall(ApiCall):
    """A request for the tree, or for the first of the files whose content is still to be read."""

    has_content: bool = False
    files: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class FilePages:
    """The files of a tree. Contents are read one by one, and only if a statement needs them."""

    call: ApiCall = field(repr=False)
    owner: str
    repository: str
    ref: str
    include: tuple[str, ...] = ()
    most_pages: int = table.MOST_PAGES

    @property
    def title(self) -> str:
        return f"github:{self.owner}/{self.repository}/files/{self.ref}"

    def first(self, request: RowRequest) -> ApiCall:
        names = {*request.columns, *(each.column for each in request.filters)}
        return FileCall(
            self.call.home,
            f"{self._base}/git/trees/{quote(self.ref, safe='')}?recursive=1",
            self.call.headers,
            has_content="content" in names,
        )

    def rows(self, call: ApiCall, page: ApiPage) -> Sequence[Mapping[str, Any]]:
        assert isinstance(call, FileCall)
        if call.files:
            return [{**call.files[0], "content": _text(page.value)}]
        return [] if call.has_content else self._files(page)

    def next(self, call: ApiCall, page: ApiPage, rows: int) -> ApiCall | None:
        assert isinstance(call, FileCall)
        if not call.has_content:
            return None
        left = call.files[1:] if call.files else tuple(self._files(page))
        if not left:
            return None
        return replace(call, url=f"{self._base}/git/blobs/{left[0]['sha']}", files=left)

    @property
    def _base(self) -> str:
        return f"{self.call.url}/repos/{self.owner}/{self.repository}"

    def _files(self, page: ApiPage) -> list[Mapping[str, Any]]:
        rows = pointers.rows(page.value, "/tree", self.title)
        if page.value.get("truncated"):
            raise DatasetError(
                "unsupported",
                f"'{self.title}' has more files than GitHub lists at once; use a clone of it",
            )
        included = re.compile("|".join(map(listing.glob_regex, self.include)))
        return [
            {
                **{name: each.get(name) for name in ("path", "size", "sha", "mode", "url")},
                "name": PurePosixPath(each["path"]).name,
                "download_url": f"{_RAW}/{self.owner}/{self.repository}/{self.ref}/"
                + quote(each["path"]),
            }
            for each in rows
            if each.get("type") == "blob" and (not self.include or included.fullmatch(each["path"]))
        ]


def _text(blob: Any) -> str | None:
    """Return the text of a blob; None if it is not UTF-8."""
    try:
        return base64.b64decode(blob["content"]).decode()
    except (KeyError, TypeError, UnicodeDecodeError, binascii.Error):
        return None
