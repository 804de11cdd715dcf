import json

from tools import sbom

LOCK = """\
aiohttp==3.14.5
    # via
    #   -c requirements/dev.txt
    #   caraway (pyproject.toml)
Yarl_X==1.25.0+local
    # via aiohttp
uvloop==0.23.0 ; sys_platform != 'win32'
    # via
    #   caraway (pyproject.toml)
    #   uvicorn[standard]
uvicorn==0.54.0
    # via caraway (pyproject.toml)
"""
NPM = {
    "packages": {
        "": {"version": "0.1.0"},
        "node_modules/react": {"version": "19.3.1", "license": "MIT"},
        "node_modules/@lezer/highlight": {"version": "1.2.5", "license": "MIT"},
        "node_modules/vitest": {"version": "4.1.12", "dev": True},
    }
}


def test_packages_of_both_locks_are_listed_with_their_licenses() -> None:
    found = sbom.document(LOCK, NPM, made_at=0)
    assert [component["purl"] for component in found["components"]] == [
        "pkg:npm/%40lezer/highlight@1.2.5",
        "pkg:npm/react@19.3.1",
        "pkg:pypi/aiohttp@3.14.5",
        "pkg:pypi/uvicorn@0.54.0",
        "pkg:pypi/uvloop@0.23.0",
        "pkg:pypi/yarl-x@1.25.0%2Blocal",
    ]
    assert found["components"][0]["licenses"] == [{"expression": "MIT"}]


def test_the_lock_says_what_requires_what() -> None:
    found = sbom.document(LOCK, NPM, made_at=0)
    required = {entry["ref"]: entry["dependsOn"] for entry in found["dependencies"]}
    assert required["pkg:pypi/aiohttp@3.14.5"] == ["pkg:pypi/yarl-x@1.25.0%2Blocal"]
    assert required["pkg:pypi/uvicorn@0.54.0"] == ["pkg:pypi/uvloop@0.23.0"]
    own = found["metadata"]["component"]["bom-ref"]
    assert required[own] == [
        "pkg:npm/%40lezer/highlight@1.2.5",
        "pkg:npm/react@19.3.1",
        "pkg:pypi/aiohttp@3.14.5",
        "pkg:pypi/uvicorn@0.54.0",
        "pkg:pypi/uvloop@0.23.0",
    ]


def test_the_bill_of_this_checkout_is_whole_and_equal_twice() -> None:
    text = sbom.rendered(made_at=1_700_000_000)
    assert text == sbom.rendered(made_at=1_700_000_000)
    found = json.loads(text)
    names = {component["name"] for component in found["components"]}
    assert {"datafusion", "pyarrow", "ray", "kopf", "react"} <= names
    assert "pytest" not in names and "vitest" not in names
    refs = {component["bom-ref"] for component in found["components"]}
    assert len(refs) == len(found["components"])
    own = found["metadata"]["component"]["bom-ref"]
    for entry in found["dependencies"]:
        assert {entry["ref"], *entry["dependsOn"]} <= refs | {own}
