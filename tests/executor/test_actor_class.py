"""Schedulers of the release before load the class of the actor: its module, methods and types."""

import importlib
import inspect
import io
import pickle

import ray
from ray import cloudpickle

from caraway_executor.actor import ExecutorActor

BEFORE = frozenset(
    "__init__ describe standing missing keep install load put_back open open_task offer attend "
    "withdraw take run next close cancel drain host dismiss ask next_parts end_ask refuse "
    "_standing _listen _run _open_task _offer _counted _install _do".split()
)
"""The methods of the release before, see tests/kit/releases.py."""
TYPES_BEFORE = {
    "caraway_core.changes": "LogEntry",
    "caraway_core.errors": "CarawayError",
    "caraway_core.ids": "ExecutorId TableName",
    "caraway_core.protocols.fleet": "AnswerPage Description OwnFile Pinned TableCatalog Task "
    "TaskReport",
    "caraway_core.protocols.hosting": "AnswerParts CopyOrder CopyStatus",
    "caraway_core.protocols.offers": "Offer OfferOutcome",
    "caraway_core.protocols.wire": "ActorStatus InputShape PackedPage",
    "caraway_core.tables": "StoredTable",
    "caraway_engine.execution.settings": "EngineSettings",
    "caraway_executor.actor": "ExecutorActor",
    "caraway_executor.part_options": "PartServing",
}
"""The types in the annotations of those methods, by the modules that had them."""


def test_the_actor_has_no_method_that_the_release_before_lacks() -> None:
    # Ray pickles them by name. A scheduler that cannot load the class cannot call the executor, so
    # a rollout stops at its first executor.
    found = {name for name, each in vars(ExecutorActor).items() if inspect.isfunction(each)}
    assert found - BEFORE == set()


def test_the_actor_names_no_type_that_the_release_before_lacks() -> None:
    # Ray pickles the annotations with the class.
    kind = ray.remote(ExecutorActor).__ray_metadata__.modified_class  # type: ignore[attr-defined]
    reading = _Reading(io.BytesIO(cloudpickle.dumps(kind)))  # type: ignore[no-untyped-call]
    reading.load()
    assert "caraway_executor.actor:ExecutorActor" in reading.named
    assert reading.named - _types_before() == set()


def test_the_types_of_the_release_before_are_where_they_were() -> None:
    # Schedulers of this release load the class of an executor of the release before.
    for module, _, name in (each.partition(":") for each in _types_before()):
        assert hasattr(importlib.import_module(module), name)


def _types_before() -> set[str]:
    return {f"{module}:{name}" for module, names in TYPES_BEFORE.items() for name in names.split()}


class _Reading(pickle.Unpickler):
    """Records which types of ours a pickled value names."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self.named: set[str] = set()

    def find_class(self, module_name: str, global_name: str, /) -> object:
        if module_name.startswith("caraway_") and "." not in global_name:
            self.named.add(f"{module_name}:{global_name}")
        return super().find_class(module_name, global_name)
