"""Rules between the keys of an acceleration, and what of it changes nothing.

They read the plain document, as those of `rules`. A section that is switched off is held to its
shape only, but for the few rules that have always been there.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from caraway_core.errors import Problem
from caraway_core.manifest.building import accelerating
from caraway_core.manifest.documents.document import Document
from caraway_core.manifest.texts import names, scalars
from caraway_core.partitions import keys

_FILES = ("file", "file_create", "file_update")
_FOREIGN = ("cayenne", "duckdb", "sqlite", "postgres", "turso")
_OF_TIMETABLE = (
    "refresh_check_interval",
    "refresh_cron",
    "refresh_on_startup",
)
_OF_REFRESHES = (
    "refresh_sql",
    "refresh_data_window",
    "refresh_append_overlap",
    "refresh_retry_max_attempts",
)
_OF_SNAPSHOTS = (
    "snapshots_trigger",
    "snapshots_trigger_threshold",
    "snapshots_compaction",
    "snapshots_creation_policy",
    "snapshots_keep",
)
_FOREIGN_MODES = {
    "caching": "rows of a source are kept as a whole; 'runtime.caching.sql_results' keeps answers",
    "changes_after_load": "'changes' loads the rows first, and follows them then",
    "snapshot": "snapshots are a faster start of a dataset that has a source",
}
"""Why modes of other runtimes are refused."""


def is_on(document: Document) -> bool:
    """True if the dataset is accelerated."""
    section = document.value.get("acceleration")
    return isinstance(section, dict) and section.get("enabled") is not False


def dataset(document: Document) -> Iterator[Problem]:
    """Yield the contradictions between the keys of a dataset's acceleration."""
    yield from _time_column(document)
    if is_on(document):
        for key, message in _problems(document):
            yield document.problem(("acceleration", key), message)


def view(document: Document) -> Iterator[Problem]:
    """Yield the contradictions between the keys of a view's acceleration."""
    yield from dataset(document)
    if is_on(document) and _section(document).get("refresh_mode") == "changes":
        message = "a view has no changes; it is loaded whole: write 'full'"
        yield document.problem(("acceleration", "refresh_mode"), message)


def notices(document: Document) -> Iterator[str]:
    """Yield a notice for each key of an enabled acceleration that is taken otherwise, or not."""
    section = _section(document)
    mode = accelerating.refresh_mode_of(section.get("refresh_mode"), _connector(document))
    for key, message in (*_notices(section), *_without_refreshes(section, mode)):
        yield str(document.problem(("acceleration", key), message))


def _problems(document: Document) -> Iterator[tuple[str, str]]:
    section = _section(document)
    yield from _engine(section)
    yield from _refresh_mode(document, section)
    yield from _retention(section)
    yield from _on_conflict(section)
    yield from _partition_by(document, section)
    yield from _snapshots(section)


def _time_column(document: Document) -> Iterator[Problem]:
    section = _section(document)
    if document.value.get("time_column") is not None:
        return
    needing = [
        key
        for key in ("refresh_data_window", "refresh_append_overlap")
        if section.get(key) is not None
    ]
    if is_on(document) and section.get("retention_check_enabled") is True:
        needing += ["retention_period"] * (section.get("retention_period") is not None)
    for key in needing:
        message = f"'{key}' needs the dataset's 'time_column'"
        yield document.problem(("acceleration", key), message)


def _engine(section: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    engine, mode = section.get("engine"), section.get("mode")
    if engine == "arrow" and mode in _FILES:
        yield "mode", "the engine 'arrow' keeps data in memory; write 'engine: file'"
    if engine == "file" and mode == "memory":
        yield "mode", f"the engine 'file' keeps data in files; write one of: {', '.join(_FILES)}"


def _refresh_mode(document: Document, section: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    written = section.get("refresh_mode")
    if isinstance(written, str) and written in _FOREIGN_MODES:
        known = ", ".join(accelerating.REFRESH_MODES)
        yield "refresh_mode", f"'{written}' is refused: {_FOREIGN_MODES[written]}; known: {known}"
    if written is not None and not isinstance(written, str):
        return
    mode = accelerating.refresh_mode_of(written, _connector(document))
    if mode == "append" and document.value.get("time_column") is None:
        yield "refresh_mode", "'append' needs the dataset's 'time_column'"
    is_file = accelerating.engine_of(section.get("engine"), section.get("mode")) == "file"
    if mode == "changes" and is_file and section.get("primary_key") is None:
        yield "refresh_mode", "'changes' needs a 'primary_key' with this engine"


def _connector(document: Document) -> str:
    try:
        return names.split_origin(str(document.value.get("from"))).connector
    except ValueError:
        return ""


def _retention(section: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    is_checked = section.get("retention_check_enabled") is True
    if is_checked and not (section.get("retention_period") or section.get("retention_sql")):
        yield (
            "retention_check_enabled",
            "there is nothing to check; add 'retention_period' or 'retention_sql'",
        )


def _on_conflict(section: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    actions = section.get("on_conflict")
    if not isinstance(actions, dict):
        return
    written = section.get("primary_key")
    primary = _columns(written)
    is_broken = written is not None and primary is None
    known = {_columns(key) for key in _unique(section)} | {primary}
    for key, action in actions.items():
        if str(action).startswith("upsert") and written is None:
            yield "on_conflict", f"'{action}' needs a 'primary_key'"
        elif not is_broken and (columns := _columns(key)) is not None and columns not in known:
            yield "on_conflict", f"'{key}' is neither the 'primary_key' nor a unique index"


def _partition_by(document: Document, section: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Rows with one key have to be in one partition, or it would not be seen that there are two.

    Of a change that deletes nothing but the primary key is known."""
    mode = accelerating.refresh_mode_of(section.get("refresh_mode"), _connector(document))
    primary = _columns(section.get("primary_key"))
    for text in _terms(section.get("partition_by")):
        try:
            term = keys.parse(text)
        except ValueError:
            continue  # Its shape is refused elsewhere.
        if mode == "changes" and not isinstance(term, keys.BucketKey):
            yield "partition_by", f"'{text}' cannot part rows that change; write bucket(n, column)"
        elif primary is not None and not keys.keeps_together(term, primary):
            column = "" if isinstance(term, keys.ByExpression) else term.column
            what = f"'{column}' has to be" if column else f"'{text}' parts rows with one key; write"
            yield "partition_by", f"{what} a column of the 'primary_key'"
        for index in _unique(section):
            if not keys.keeps_together(term, _columns(index) or ()):
                message = (
                    f"'{text}' may part rows with the same '{index}', whose index is 'unique'; "
                    "write a column of it, leave 'partition_by' out, or make the index 'enabled'"
                )
                yield "partition_by", message


def _terms(written: object) -> Iterator[str]:
    """Yield the texts of `partition_by`, with or without names."""
    if isinstance(written, dict):
        yield from map(str, written.values())
    elif isinstance(written, list):
        for each in written:
            yield from _terms(each)
    elif isinstance(written, str):
        yield written


def _unique(section: Mapping[str, object]) -> list[str]:
    indexes = _mapping(section.get("indexes"))
    return [str(key) for key, value in indexes.items() if value == "unique"]


def _columns(text: object) -> frozenset[str] | None:
    """Return the columns of a key, whose order does not matter, if they can be read."""
    try:
        return frozenset(keys.columns(text)) if isinstance(text, str) else None
    except ValueError:
        return None


def _snapshots(section: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    trigger = section.get("snapshots_trigger") or "refresh_complete"
    threshold = section.get("snapshots_trigger_threshold")
    if threshold is None and trigger in ("time_interval", "stream_batches"):
        yield "snapshots_trigger", f"'{trigger}' needs 'snapshots_trigger_threshold'"
    if threshold is not None and not isinstance(threshold, list | dict):
        try:
            accelerating.threshold(trigger, scalars.written(threshold))
        except ValueError as exc:
            yield "snapshots_trigger_threshold", str(exc)


def _notices(section: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    engine = section.get("engine")
    if engine in _FOREIGN:
        yield "engine", f"'{engine}' means the engine 'file' here: the data are kept in its files"
        if section.get("params"):
            yield "params", f"have no effect: those of '{engine}' are not for the engine 'file'"
    elif section.get("params"):
        yield "params", f"have no effect: the engine '{engine or 'arrow'}' has none"
    if section.get("metrics"):
        yield "metrics", "has no effect"
    for key in ("retention_period", "retention_sql", "retention_check_interval"):
        if section.get(key) is not None and section.get("retention_check_enabled") is not True:
            yield key, "has no effect unless 'retention_check_enabled' is true"
    is_jittered = section.get("refresh_jitter_enabled") is True
    if section.get("refresh_jitter_max") is not None and not is_jittered:
        yield "refresh_jitter_max", "has no effect unless 'refresh_jitter_enabled' is true"
    has_times = section.get("refresh_check_interval") or section.get("refresh_cron")
    if is_jittered and not has_times:
        yield (
            "refresh_jitter_enabled",
            "has no effect without 'refresh_check_interval' or 'refresh_cron'",
        )
    is_retried = section.get("refresh_retry_enabled") is not False
    if section.get("refresh_retry_max_attempts") is not None and not is_retried:
        yield "refresh_retry_max_attempts", "has no effect while 'refresh_retry_enabled' is false"
    if section.get("snapshots") in (None, "disabled"):
        for key in _OF_SNAPSHOTS:
            if section.get(key) is not None:
                yield key, "has no effect unless 'snapshots' is 'enabled'"


def _without_refreshes(section: Mapping[str, object], mode: str) -> Iterator[tuple[str, str]]:
    """Yield what a dataset that is not refreshed by itself does not look at."""
    unread = {"changes": (*_OF_TIMETABLE, *_OF_REFRESHES), "disabled": _OF_TIMETABLE}
    for key in unread.get(str(mode), ()):
        if section.get(key) not in (None, False):
            yield key, f"has no effect with the refresh_mode '{mode}'"
    if mode == "changes" and section.get("on_zero_results") == "use_source":
        yield "on_zero_results", "has no effect: a source of changes answers no queries"


def _section(document: Document) -> dict[str, Any]:
    return _mapping(document.value.get("acceleration"))


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
