"""Checks the built site: each link leads somewhere, and no page loads anything from another host.

`make docs` runs `python -m tools.site site`.
"""

import sys
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_LOADS = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
_NOT_LOADED = frozenset({"canonical", "prev", "next", "edit", "alternate"})


class _Page(HTMLParser):
    """The ids, links and loads of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value for name, value in attrs if value is not None}
        self.ids |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        relation = frozenset(values.get("rel", "").split())
        if (source := values.get(_LOADS.get(tag, ""))) and not relation & _NOT_LOADED:
            self.loads.append(source)


@cache
def _read(path: Path) -> _Page:
    page = _Page()
    page.feed(path.read_text())
    return page


def problems(site: Path) -> Iterator[str]:
    """Yield a message for each broken link, and for each load from another host."""
    for path in sorted(site.rglob("*.html")):
        page, place = _read(path), path.relative_to(site)
        for load in page.loads:
            if urlsplit(load).netloc:
                yield f"{place}: loads {load}"
        for link in [*page.links, *page.loads]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or place.name == "404.html":
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            if not target.exists():
                yield f"{place}: no file for {link}"
            elif parts.fragment and target.suffix == ".html":
                if unquote(parts.fragment) not in _read(target).ids:
                    yield f"{place}: no place for {link}"


def main() -> None:
    """Print the problems of a site; end with 1 if there are any."""
    site = Path(sys.argv[1]).resolve()
    pages = sum(1 for _ in site.rglob("*.html"))
    found = list(problems(site))
    print("\n".join([*found, f"{pages} pages, {len(found)} problems"]))
    sys.exit(1 if found or not pages else 0)


if __name__ == "__main__":
    main()
