"""The base class of sections, and the types of what their keys hold.

A section is a frozen dataclass: its fields say how the keys of a file are checked, and the rest of
the system uses it as a value. Pydantic does the checks. It is imported when a manifest is checked,
because most processes need the values only.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self, TypeVar

from caraway_core.manifest.texts import memory, scalars, units

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler
    from pydantic_core.core_schema import CoreSchema

Item = TypeVar("Item")
_SHOWN_DEFAULTS = (bool, int, float, str, type(None))


class Section:
    """A mapping with known keys. A known key without a value counts as absent."""

    __slots__ = ()

    KEYS: ClassVar[Mapping[str, Any]] = {}
    """Further keys and their types, which `from_keys` reads, or which have no effect."""

    FIRST: ClassVar[tuple[str, ...]] = ()
    """The keys that messages and the schema list first; the others follow."""

    @classmethod
    def from_keys(cls, keys: dict[str, object], folder: Path) -> object:
        """Return the value of the checked keys of a file in the folder."""
        return cls.of_kept(keys)

    @classmethod
    def of_kept(cls, keys: dict[str, object], **others: object) -> Self:
        """Return the value of the keys that have fields, and of other fields."""
        return cls(**{key: keys[key] for key in keys if key not in cls.KEYS}, **others)

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: object, handler: "GetCoreSchemaHandler"
    ) -> "CoreSchema":
        from pydantic_core import core_schema as schemas

        keys = {}
        written = {_key(each): each for each in _fields(cls)}
        for key, type_ in key_types(cls).items():
            schema = handler.generate_schema(_or_none(type_))
            each, name, is_required = written.get(key), key, False
            if each is not None:
                schema, name = _with_default(schema, each.default), each.name
                is_required = each.default is MISSING and each.default_factory is MISSING
            keys[name] = schemas.typed_dict_field(
                schema, required=is_required, validation_alias=key
            )
        known = set(known_keys(cls))
        mapping = schemas.typed_dict_schema(
            keys, cls=cls, extra_behavior="forbid", config={"strict": True}
        )
        return schemas.with_info_after_validator_function(
            lambda checked, info: cls.from_keys(checked, info.context),
            schemas.no_info_before_validator_function(
                lambda content: _without_empty(content, known), mapping
            ),
            ref=f"{cls.__module__}.{cls.__qualname__}:{id(cls)}",
        )


def _fields(section: type[Section]) -> tuple[Field[Any], ...]:
    return fields(section)  # type: ignore[arg-type]  # every section is a dataclass


def _key(each: Field[object]) -> str | None:
    """Return the key of a field in files, if they set it."""
    key: str | None = each.metadata.get("key", each.name)
    return key


def _or_none(type_: object) -> object:
    """Allow a section to be empty in the JSON Schema; where it is checked, it counts as absent."""
    return type_ | None if isinstance(type_, type) and issubclass(type_, Section) else type_


def _with_default(schema: "CoreSchema", default: object) -> "CoreSchema":
    from pydantic_core import core_schema as schemas

    if not isinstance(default, _SHOWN_DEFAULTS):
        return schema
    return schemas.with_default_schema(schema, default=default)


def _without_empty(content: object, known: set[str]) -> object:
    if not isinstance(content, dict):
        return content
    return {key: value for key, value in content.items() if value is not None or key not in known}


def key(name: str, **options: Any) -> Any:
    """Return a field whose key in files is not its name."""
    return field(metadata={"key": name}, **options)


def unwritten(**options: Any) -> Any:
    """Return a field that no file sets; `from_keys` does."""
    return field(metadata={"key": None}, **options)


def known_keys(section: type[Section]) -> tuple[str, ...]:
    """Return the keys of a section as they are written in a file."""
    return tuple(key_types(section))


def key_types(section: type[Section]) -> dict[str, object]:
    """Return the keys of a section as they are written in a file, and their types."""
    types: dict[str | None, Any] = {_key(each): each.type for each in _fields(section)}
    types.update(section.KEYS)
    first = {key: types[key] for key in section.FIRST}
    return {key: type_ for key, type_ in (first | types).items() if key is not None}


def written(section: Section) -> dict[str, Any]:
    """Return the keys of a section whose values are not the defaults, with lists for tuples."""
    keys = {}
    for each in _fields(type(section)):
        value, factory = getattr(section, each.name), each.default_factory
        default = each.default if factory is MISSING else factory()
        if (key := _key(each)) is not None and value != default:
            keys[key] = list(value) if isinstance(value, tuple) else value
    return keys


@dataclass(frozen=True, slots=True)
class Before:
    """Reads a value of a file before its type is checked; a ValueError refuses the value.

    The type is that of the annotation, unless `checked` is another one.
    """

    read: Callable[[Any], Any]
    checked: Any = None

    def __get_pydantic_core_schema__(
        self, source: object, handler: "GetCoreSchemaHandler"
    ) -> "CoreSchema":
        from pydantic_core import core_schema as schemas

        inner = handler(source) if self.checked is None else handler.generate_schema(self.checked)
        return schemas.no_info_before_validator_function(self.read, inner)


@dataclass(frozen=True, slots=True)
class After:
    """Checks a value of the right type, and may replace it; a ValueError refuses the value.

    The type is that of the annotation, unless `checked` is another one.
    """

    check: Callable[[Any], Any]
    checked: Any = None

    def __get_pydantic_core_schema__(
        self, source: object, handler: "GetCoreSchemaHandler"
    ) -> "CoreSchema":
        from pydantic_core import core_schema as schemas

        inner = handler(source) if self.checked is None else handler.generate_schema(self.checked)
        return schemas.no_info_after_validator_function(self.check, inner)


@dataclass(frozen=True, slots=True)
class InFolder:
    """Reads a text of a file with the folder of the file."""

    read: Callable[[str, Path], Any]

    def __get_pydantic_core_schema__(
        self, source: object, handler: "GetCoreSchemaHandler"
    ) -> "CoreSchema":
        from pydantic_core import core_schema as schemas

        return schemas.with_info_after_validator_function(
            lambda text, info: self.read(text, info.context), handler.generate_schema(Text)
        )


class Limits:
    """Bounds of a value, in the words of pydantic."""

    def __init__(self, **bounds: object) -> None:
        self._bounds = bounds

    def __get_pydantic_core_schema__(
        self, source: object, handler: "GetCoreSchemaHandler"
    ) -> "CoreSchema":
        schema = handler(source)
        inner: Any = schema
        while inner["type"].startswith("function-"):
            inner = inner["schema"]
        inner.update(self._bounds)
        return schema


def _texts(value: object) -> object:
    if not isinstance(value, dict):
        return value
    texts = {}
    for name, item in value.items():
        if item is None or item == "":
            continue  # A key without a value counts as absent.
        try:
            texts[name] = scalars.written(item)
        except ValueError as exc:
            raise ValueError(f"the value of '{name}' {exc}") from exc
    return texts


def _text_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _positive(value: float) -> float:
    if not (math.isfinite(value) and value > 0):
        raise ValueError("must be more than 0")
    return value


def _absolute(text: str, folder: Path) -> str:
    # Its imports take a tenth of the time of this package's; only checks need them.
    from caraway_core.manifest.texts import locations

    return locations.absolute(text, folder)


Items = Annotated[tuple[Item, ...], Limits(strict=False)]
"""The items of a list."""

Duration = Annotated[float, Before(units.seconds)]
PositiveDuration = Annotated[Duration, After(_positive)]
Size = Annotated[int, Before(units.size_bytes)]
MemorySize = Annotated[int, Before(memory.limit_bytes)]
BodySize = Annotated[Size, Limits(ge=1024)]
Count = Annotated[int, Limits(ge=1, le=1_000_000)]
CountOrNone = Annotated[int, Limits(ge=0, le=1_000_000)]
Text = Annotated[str, Limits(min_length=1)]
Written = Annotated[str, Before(scalars.written)]
"""A string that may be unquoted even if it looks like a number."""

Texts = Annotated[Mapping[str, str], Before(_texts, dict[str, str])]
TextList = Annotated[tuple[str, ...], Before(_text_list, Items[str])]
Anything = dict[str, Any]
"""A mapping that is not checked further."""

Metadata = Annotated[Mapping[str, object], After(scalars.plain, Anything)]

FilePath = Annotated[Path, InFolder(lambda text, folder: folder / text)]
"""A path that is relative to the folder of the file."""

Place = Annotated[str, InFolder(_absolute)]
"""A folder, which becomes absolute, or the URL of a bucket."""
