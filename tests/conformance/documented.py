"""The source of docs/contributors/write-a-source.md, as the page has it."""

import functools
import re
import sys
from types import ModuleType

from caraway_core.protocols.sources import Source
from tests.kit.written_docs import DOCS

NAME = "caraway_arrow_file"


@functools.cache
def _module() -> ModuleType:
    page = (DOCS / "contributors" / "write-a-source.md").read_text()
    (source,) = re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    module = ModuleType(NAME)
    # Pickled tables name the module.
    sys.modules[NAME] = module
    exec(compile(source, f"{NAME}.py", "exec"), module.__dict__)
    return module


def source() -> Source:
    """Return the source of the page."""
    made: Source = _module().ArrowFileSource()
    return made
