from pathlib import Path
from types import SimpleNamespace

from tools import site, site_hooks

PAGE = '<h1 id="top">x</h1><a href="other.html#place">y</a><a href="https://x.example/">z</a>'


def test_links_and_places_are_checked_and_other_hosts_are_not_loaded(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.html").write_text(PAGE)
    (tmp_path / "other.html").write_text('<p id="place"><a href="sub/c.html">c</a>')
    (tmp_path / "sub" / "c.html").write_text(
        '<a href="../other.html#none">x</a><a href="none.html">y</a><a href="#top">z</a>'
        '<script src="https://cdn.example/x.js"></script><img src="../a.html">'
        '<link rel="canonical" href="https://x.example/">'
    )
    assert list(site.problems(tmp_path)) == [
        "sub/c.html: loads https://cdn.example/x.js",
        "sub/c.html: no place for ../other.html#none",
        "sub/c.html: no file for none.html",
        "sub/c.html: no place for #top",
    ]


def test_the_reference_has_every_public_name() -> None:
    page = site_hooks.api_page()
    assert "## caraway.Client\n\n::: caraway.client.Client\n" in page
    assert "## caraway.CarawayError\n\n::: caraway_core.errors.CarawayError\n" in page


def test_links_to_pages_of_the_root_lead_to_the_site_and_others_become_text() -> None:
    page = SimpleNamespace(file=SimpleNamespace(src_uri="contributors/releases.md"))
    markdown = (
        "[log](../../CHANGELOG.md) [it](../decisions/0055-releases-side-by-side.md#x) "
        "[all](../decisions/) [file](../../compose.yaml) [far](https://x.example/)\n"
        "```python no-run\n"
    )
    assert site_hooks.on_page_markdown(markdown, page, None, None) == (
        "[log](../changelog.md) [it](../decisions/0055-releases-side-by-side.md#x) "
        "[all](../decisions/README.md) file [far](https://x.example/)\n"
        "```python\n"
    )


def test_every_folder_of_pages_is_a_section() -> None:
    folders = {path.name for path in (site_hooks.ROOT / "docs").iterdir() if path.is_dir()}
    assert folders == site_hooks.SECTIONS.keys()
