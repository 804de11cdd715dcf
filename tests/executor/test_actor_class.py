"""Schedulers of the release before load the class of the actor, and its methods by name."""

import inspect

from caraway_executor.actor import ExecutorActor

BEFORE = frozenset(
    "__init__ describe standing missing keep install load put_back open open_task offer attend "
    "withdraw take run next close cancel drain host dismiss ask next_parts end_ask refuse "
    "_standing _listen _run _open_task _offer _counted _install _do".split()
)
"""The methods of the release before, see tests/kit/releases.py."""


def test_the_actor_has_no_method_that_the_release_before_lacks() -> None:
    # Ray pickles them by name. A scheduler that cannot load the class cannot call the executor, so
    # a rollout stops at its first executor.
    found = {name for name, each in vars(ExecutorActor).items() if inspect.isfunction(each)}
    assert found - BEFORE == set()
