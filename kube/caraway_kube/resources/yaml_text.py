"""Writes manifests as YAML 1.2, because PyYAML writes YAML 1.1."""

from typing import Any

import yaml

from caraway_core.manifest.texts import scalars

# Any: PyYAML has no type for the dumper in C.
_Base: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class _Dumper(_Base):  # type: ignore[misc]
    def ignore_aliases(self, data: object) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    # `1e5` and `0o17` are strings in YAML 1.1, but numbers in YAML 1.2.
    style = "|" if "\n" in text else None if scalars.resolve(text) == text else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def _as_written(tag: str) -> object:
    def represent(dumper: yaml.SafeDumper, value: Any) -> yaml.ScalarNode:
        return dumper.represent_scalar(f"tag:yaml.org,2002:{tag}", value.text)

    return represent


_Dumper.add_representer(str, _text)
_Dumper.add_representer(scalars.WrittenInt, _as_written("int"))
_Dumper.add_representer(scalars.WrittenFloat, _as_written("float"))


def dump(value: dict[str, Any]) -> str:
    """Return a mapping as YAML that parses to the same value. Keys keep their order."""
    return yaml.dump(
        value, Dumper=_Dumper, sort_keys=False, width=100, allow_unicode=True, indent=2
    )
