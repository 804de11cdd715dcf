"""Sets the clock of the day of a Python process ahead; its monotonic clock stays.

Native modules check the size of `datetime.datetime`, so only modules of Caraway get another one.
"""

import datetime
import os
import sys
import time
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

_AHEAD_S = float(os.environ["CARAWAY_TEST_CLOCK_AHEAD_S"])
_TIME, _TIME_NS = time.time, time.time_ns


class _Kind(type):
    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, datetime.datetime)

    def __subclasscheck__(cls, kind: type) -> bool:
        return issubclass(kind, datetime.datetime)


class _Ahead(datetime.datetime, metaclass=_Kind):
    """Only `now` differs; all values are plain ones."""

    def __new__(cls, *arguments: Any, **named: Any) -> Any:
        return datetime.datetime(*arguments, **named)

    @classmethod
    def now(cls, tz: Any = None) -> Any:
        return datetime.datetime.now(tz) + datetime.timedelta(seconds=_AHEAD_S)

    @classmethod
    def utcnow(cls) -> Any:
        return datetime.datetime.utcnow() + datetime.timedelta(seconds=_AHEAD_S)


def _plain(name: str) -> Any:
    return staticmethod(getattr(datetime.datetime, name))


for _name in ("fromtimestamp", "utcfromtimestamp", "fromisoformat", "combine", "strptime",
              "fromordinal", "fromisocalendar"):  # fmt: skip
    setattr(_Ahead, _name, _plain(_name))

time.time = lambda: _TIME() + _AHEAD_S
time.time_ns = lambda: _TIME_NS() + int(_AHEAD_S * 1e9)


class _Finder:
    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path, target) if name.startswith("caraway_") else None
        loader: Any = spec.loader if spec else None
        if loader is not None:
            run = loader.exec_module

            def exec_module(module: ModuleType) -> None:
                run(module)
                if vars(module).get("datetime") is datetime.datetime:
                    vars(module)["datetime"] = _Ahead

            loader.exec_module = exec_module
        return spec


sys.meta_path.insert(0, _Finder)
