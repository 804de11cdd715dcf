"""Rules between the keys of workers, and the values that they become."""

from collections.abc import Iterator, Mapping

from caraway_core.errors import Problem
from caraway_core.loading import registry
from caraway_core.manifest.documents.document import Document, Location
from caraway_core.manifest.shape import workers as shapes
from caraway_core.manifest.texts import units
from caraway_core.manifest.values.workers import (
    DEFAULT_COOLDOWN_S,
    DeclaredWorker,
    RoutedModel,
    Routing,
    WorkerType,
)

PARAMS: Mapping[WorkerType, tuple[str, ...]] = {"load_balance": ("prompt", "cooldown"), "sql": ()}


def worker(document: Document) -> Iterator[Problem]:
    """Yield the contradictions between the keys of a worker."""
    content = document.value
    at, routed = _routed(document)
    has_models, has_sql = bool(routed), content.get("sql") is not None
    if content.get("models") and _mapping(content.get("load_balance")).get("routing"):
        message = "'models' and 'load_balance.routing' mean the same; keep one"
        yield document.problem(("load_balance",), message)
    if has_models and has_sql:
        message = "a worker has models or a statement; make two workers of it"
        yield document.problem(("sql",), message)
    elif not has_models and not has_sql:
        message = "the worker has nothing to do; give it 'models', or 'sql' with a 'cron'"
        yield document.problem((), message)
    type_: WorkerType = "load_balance" if has_models else "sql"
    others = [each for each in PARAMS if each != type_]
    if has_models is not has_sql and content.get("type") in others:
        message = f"the worker has {'models' if has_models else 'a statement'}: write '{type_}'"
        yield document.problem(("type",), message)
    if has_sql and content.get("cron") is None:
        message = "a statement runs at the times of a 'cron', which is missing"
        yield document.problem(("sql",), message)
    yield from _models(document, at, routed)
    yield from _cron(document)
    yield from _params(document, type_)


def declared(shape: shapes.WorkerSection) -> DeclaredWorker:
    """Build a worker whose keys were checked."""
    routed = shape.models or (shape.load_balance.routing if shape.load_balance else [])
    routing: Routing = "round_robin"
    if any(each.order is not None for each in routed):
        routing = "fallback"
        routed = sorted(routed, key=lambda each: each.order or 0)
    elif any(each.weight is not None for each in routed):
        routing = "weighted"
    cooldown = shape.params.get("cooldown")
    return DeclaredWorker(
        name=shape.name,
        type="load_balance" if routed else "sql",
        description=shape.description,
        routing=routing,
        models=tuple(RoutedModel(each.from_, each.weight or 1.0) for each in routed),
        sql=shape.sql,
        prompt=shape.params.get("prompt"),
        cron=shape.cron,
        cooldown_s=DEFAULT_COOLDOWN_S if cooldown is None else units.seconds(cooldown),
    )


class WorkerReferences:
    """The workers that were found so far, and the models that they name."""

    def __init__(self) -> None:
        self.workers: list[DeclaredWorker] = []
        self._places: dict[str, str] = {}
        self._found: list[tuple[DeclaredWorker, Document]] = []

    def add(self, shape: shapes.WorkerSection, found: Document) -> Iterator[Problem]:
        """Take a worker; yield a problem if its name is taken."""
        if (first := self._places.get(shape.name)) is not None:
            message = f"the name '{shape.name}' is taken: it is declared at {first}"
            yield found.problem(("name",), message)
            return
        self._places[shape.name] = f"{found.path}:{found.line(('name',))}"
        if not any(worker(found)):
            declared_worker = declared(shape)
            self.workers.append(declared_worker)
            self._found.append((declared_worker, found))

    def problems(self, models: Mapping[str, str]) -> Iterator[Problem]:
        """Yield the problems of the names, given where each model is declared."""
        for declared_worker, document in self._found:
            if (place := models.get(declared_worker.name)) is not None:
                message = (
                    f"the name '{declared_worker.name}' is taken: a model is declared at {place}"
                )
                yield document.problem(("name",), message)
            at, routed = _routed(document)
            for index, each in enumerate(routed):
                name = str(each["from"])
                if name in models:
                    continue
                if name in self._places:
                    message = f"'{name}' is a worker; name its models"
                    yield document.problem((*at, index, "from"), message)
                else:
                    message = registry.unknown("model", name, models)
                    yield document.problem((*at, index, "from"), message)


def _routed(document: Document) -> tuple[Location, list[dict[str, object]]]:
    """Return where the models of a worker are listed, and those entries that can be read."""
    content = document.value
    at: Location = ("models",)
    listed = content.get("models")
    if not listed:
        at, listed = ("load_balance", "routing"), _mapping(content.get("load_balance"))
        listed = listed.get("routing")
    entries = listed if isinstance(listed, list) else []
    return at, [each for each in entries if isinstance(each, dict) and each.get("from")]


def _models(document: Document, at: Location, routed: list[dict[str, object]]) -> Iterator[Problem]:
    seen: set[str] = set()
    keys = {key for each in routed for key in ("weight", "order") if each.get(key) is not None}
    for index, each in enumerate(routed):
        here = (*at, index)
        if str(each["from"]) in seen:
            yield document.problem((*here, "from"), f"the model '{each['from']}' is named twice")
        seen.add(str(each["from"]))
        if len(keys) == 2 and each.get("order") is not None:
            message = "'weight' divides requests, 'order' makes a fallback; keep one of the two"
            yield document.problem((*here, "order"), message)
        elif len(keys) == 1 and each.get(key := next(iter(keys))) is None:
            message = f"the key '{key}' is missing, which other models of the worker have"
            yield document.problem((*here, key), message)


def _cron(document: Document) -> Iterator[Problem]:
    text = document.value.get("cron")
    if not isinstance(text, str) or len(text.split()) != 5:
        return
    try:
        from cronsim import CronSim, CronSimError
    except ImportError:  # The runtime has it, and checks when it starts.
        return
    from datetime import UTC, datetime

    try:
        next(CronSim(text, datetime(2000, 1, 1, tzinfo=UTC)))
    except CronSimError as exc:
        field = str(exc).removeprefix("Bad ")
        message = f"'{text}' is not a cron expression: its {field} is invalid"
        yield document.problem(("cron",), message)
    except StopIteration:
        yield document.problem(("cron",), f"'{text}' never occurs: no such day in fifty years")


def _params(document: Document, type_: WorkerType) -> Iterator[Problem]:
    params = _mapping(document.value.get("params"))
    for name in params:
        if name not in PARAMS[type_]:
            message = registry.unknown(f"{type_} param", str(name), PARAMS[type_])
            yield document.problem(("params", name), message)
    has_cron = document.value.get("cron") is not None
    has_prompt = bool(str(params.get("prompt") or "").strip())
    if type_ == "load_balance" and has_cron and not has_prompt:
        message = "the param 'prompt' is missing: what the models are asked at the times of 'cron'"
        yield document.problem(("cron",), message)
    if params.get("prompt") is not None and type_ == "load_balance" and not has_cron:
        message = "it is sent at the times of a 'cron', which is missing"
        yield document.problem(("params", "prompt"), message)
    if params.get("cooldown") is not None and type_ == "load_balance":
        try:
            units.seconds(params["cooldown"])
        except ValueError as exc:
            yield document.problem(("params", "cooldown"), str(exc))


def _mapping(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}
