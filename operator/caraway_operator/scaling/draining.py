"""Scaling in: one executor at a time, the highest first, and only once it is of no use to anybody.

The state is a value that is kept in the cluster's status, so that an operator that starts anew goes
on where the last one was.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from caraway_operator.scheduler_link import ExecutorView


@dataclass(frozen=True, slots=True)
class Drain:
    """An executor that was asked to take no more work."""

    executor: str
    since: float
    """Seconds since 1970: it outlives the process."""
    purpose: Literal["scale", "update"] = "scale"


@dataclass(frozen=True, slots=True)
class Scene:
    """What a decision is made of. `executors` is None while no scheduler answers."""

    now: float
    wish: int
    replicas: int
    """What the StatefulSet is told to have."""
    present: int
    """Pods that there are, those on their way out included."""
    name: str
    """Of the StatefulSet; its pods are called after it."""
    drain: Drain | None
    executors: Collection[ExecutorView] | None
    timeout_s: float
    has_schedulers: bool = True
    """Without any, nothing can run on executors."""


@dataclass(frozen=True, slots=True)
class Step:
    """What to do next."""

    replicas: int
    drain: Drain | None = None
    """What is to be kept."""
    begin: str | None = None
    undo: str | None = None
    why: str = ""
    is_waiting: bool = False


def decide(scene: Scene) -> Step:
    """Say how many replicas to write, and whom to drain or to spare."""
    drain = scene.drain if scene.drain and scene.drain.purpose == "scale" else None
    if scene.wish >= scene.replicas:
        return Step(scene.wish, undo=drain.executor if drain else None)
    if not scene.has_schedulers:
        return Step(scene.wish, why="no scheduler runs that could give executors work")
    last = f"{scene.name}-{scene.replicas - 1}"
    if drain is not None and drain.executor != last:
        return Step(scene.replicas, undo=drain.executor, is_waiting=True)
    if scene.present > scene.replicas:
        return Step(scene.replicas, drain, why=f"a pod after {last} stops", is_waiting=True)
    if drain is None:
        begun = Drain(last, scene.now)
        return Step(scene.replicas, begun, begin=last, why=f"{last} drains", is_waiting=True)
    if reason := released(drain, scene.executors, scene.now, scene.timeout_s):
        return Step(scene.replicas - 1, why=reason, is_waiting=scene.wish < scene.replicas - 1)
    # Asked again each time: the wish is lost where the executor was started anew meanwhile.
    return Step(scene.replicas, drain, begin=last, why=f"{last} drains", is_waiting=True)


def released(
    drain: Drain, executors: Collection[ExecutorView] | None, now: float, timeout_s: float
) -> str:
    """Say why an executor that drains may go now; empty if it may not."""
    if now - drain.since >= timeout_s:
        return f"{drain.executor} did not drain in {timeout_s:g} s, and is stopped as it is"
    if executors is None:
        return ""
    view = next((each for each in executors if each.id == drain.executor), None)
    if view is None or not (view.is_ready or view.is_draining):
        return f"{drain.executor} is not in use"
    return f"{drain.executor} has drained" if view.is_drained else ""
