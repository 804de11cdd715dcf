"""Values as YAML that manifests are read from: rules of YAML 1.2, where PyYAML writes 1.1."""

from typing import Any

import yaml

from caraway_core.manifest import scalars

# Any: PyYAML publishes no type for what may be written in C.
_Base: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class _Dumper(_Base):  # type: ignore[misc]
    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    # `1e5` and `0o17` are plain texts to PyYAML, and numbers to whoever reads the manifest.
    style = "|" if "\n" in text else None if scalars.resolve(text) == text else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def _as_written(tag: str) -> Any:
    def represent(dumper: yaml.SafeDumper, value: Any) -> yaml.ScalarNode:
        return dumper.represent_scalar(f"tag:yaml.org,2002:{tag}", value.text)

    return represent


_Dumper.add_representer(str, _text)
_Dumper.add_representer(scalars.WrittenInt, _as_written("int"))
_Dumper.add_representer(scalars.WrittenFloat, _as_written("float"))


def dump(value: dict[str, Any]) -> str:
    """Write a mapping so that it is read back as it is; keys keep their order."""
    return yaml.dump(
        value, Dumper=_Dumper, sort_keys=False, width=100, allow_unicode=True, indent=2
    )
