"""Monitors: templates, conditions and targets, and what makes one of them valid."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from caraway_management.domain import addresses, names, refusals
from caraway_management.domain.addresses import Outside

MOST_OF_PROJECT = 20
MOST_EMAILS, MOST_RECIPIENTS, MOST_DATASETS = 20, 50, 20
LONGEST_SUSTAIN_S = 86_400
_SUSTAIN_S = 300
_NAME_LENGTH = 100
_EMAIL = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*")
_CHANNEL = re.compile(r"[A-Z0-9]{1,32}")
_TOKEN = re.compile(r"[\x21-\x7e]{1,4096}")

Op = Literal["GT", "GEQ", "LT", "LEQ", "EQ", "NEQ"]
Window = Literal["1m", "5m", "15m", "30m", "1h"]
Severity = Literal["warn", "critical"]
WINDOWS_S: Mapping[str, int] = {"1m": 60, "5m": 300, "15m": 900, "30m": 1_800, "1h": 3_600}


class Of(StrEnum):
    """The subject of a monitor."""

    PROJECT = "project"
    CLUSTER = "cluster"


@dataclass(frozen=True, slots=True)
class Template:
    """A value that monitors can be set on."""

    title: str
    unit: str = ""
    of: Of = Of.PROJECT
    op: Op = "GT"
    """The op of monitors that name none."""
    sustain_s: int = _SUSTAIN_S
    has_datasets: bool = False


TEMPLATES: Mapping[str, Template] = {
    "instance_health": Template("Healthy instances", "%", op="LT"),
    "memory_working_set": Template("Memory", "%"),
    "container_cpu": Template("CPU", "%"),
    "query_failures": Template("Failed queries", sustain_s=0),
    "http_5xx": Template("HTTP responses with status 5xx", sustain_s=0),
    "flight_failures": Template("Failed queries over Flight", sustain_s=0),
    "query_latency_p99": Template("99th percentile of query durations", "ms"),
    "llm_failures": Template("Failed calls of models", sustain_s=0),
    "dataset_refresh_errors": Template("Failed refreshes", sustain_s=0, has_datasets=True),
    "dataset_status": Template("Dataset state", op="EQ", has_datasets=True),
    "cluster_cpu": Template("CPU of the cluster", "%", Of.CLUSTER),
    "cluster_memory": Template("Memory of the cluster", "%", Of.CLUSTER),
    "cluster_availability": Template("Projects that run", "%", Of.CLUSTER, "LT"),
    # Only in Caraway: the alert on the storage quota.
    "storage": Template("Storage", "%"),
}


@dataclass(frozen=True, slots=True)
class Spec:
    """A condition on the value of a template."""

    op: Op
    threshold: float
    window: Window = "5m"
    sustain_s: int = _SUSTAIN_S
    severity: Severity = "warn"
    includes_details: bool = True
    datasets: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the form of requests and replies."""
        shown: dict[str, object] = {
            "op": self.op,
            "threshold": self.threshold,
            "window": self.window,
            "sustainSecs": self.sustain_s,
            "severity": self.severity,
            "includeDetails": self.includes_details,
        }
        return shown | ({"datasets": list(self.datasets)} if self.datasets else {})

    def holds(self, value: float) -> bool:
        """Return whether a value meets the condition."""
        compared: Mapping[str, bool] = {
            "GT": value > self.threshold,
            "GEQ": value >= self.threshold,
            "LT": value < self.threshold,
            "LEQ": value <= self.threshold,
            "EQ": value == self.threshold,
            "NEQ": value != self.threshold,
        }
        return compared[self.op]


def stored_spec(values: Mapping[str, Any]) -> Spec:
    """Return a spec from the form that `as_json` gave."""
    return Spec(
        op=values["op"],
        threshold=values["threshold"],
        window=values["window"],
        sustain_s=values["sustainSecs"],
        severity=values["severity"],
        includes_details=values["includeDetails"],
        datasets=tuple(values.get("datasets", ())),
    )


def check_name(name: str) -> str:
    """Return the name of a monitor or reaction.

    Raises:
        RefusedError: it is none.
    """
    return names.check_text(name, "name", _NAME_LENGTH)


def find_template(name: str, of: Of) -> Template:
    """Return a template for projects, or for clusters.

    Raises:
        RefusedError: there is none of this name.
    """
    found = TEMPLATES.get(name)
    if found is None or found.of is not of:
        known = ", ".join(each for each, template in TEMPLATES.items() if template.of is of)
        raise refusals.RefusedError(
            404,
            f"no template of this name can be used on a {of}; use one of {known}",
            "monitor_template_unavailable",
        )
    return found


def read_spec(
    template: Template, name: str, values: Mapping[str, Any], base: Spec | None = None
) -> Spec:
    """Return the condition of a request; omitted fields are those of `base`.

    Raises:
        RefusedError: a value does not fit the template.
    """
    first = base or Spec(template.op, math.nan, sustain_s=template.sustain_s)
    datasets = values.get("datasets")
    if values.get("dataset") is not None:
        if datasets is not None:
            raise refusals.invalid_field("spec.datasets", "give either dataset or datasets")
        datasets = [values["dataset"]]
    spec = Spec(
        op=values.get("op", first.op),
        threshold=values.get("threshold", first.threshold),
        window=values.get("window", first.window),
        sustain_s=values.get("sustainSecs", first.sustain_s),
        severity=values.get("severity", first.severity),
        includes_details=values.get("includeDetails", first.includes_details),
        datasets=first.datasets if datasets is None else tuple(dict.fromkeys(datasets)),
    )
    _check_spec(template, name, spec)
    return spec


def _check_spec(template: Template, name: str, spec: Spec) -> None:
    if math.isnan(spec.threshold):
        raise refusals.invalid_field("spec.threshold", "is missing")
    if not math.isfinite(spec.threshold) or not -1e15 <= spec.threshold <= 1e15:
        raise refusals.invalid_field("spec.threshold", "must be a number of usual size")
    if spec.datasets and not template.has_datasets:
        raise refusals.invalid_field("spec.datasets", f"'{name}' is not about datasets")
    if len(spec.datasets) > MOST_DATASETS:
        raise refusals.invalid_field("spec.datasets", f"must be at most {MOST_DATASETS}")
    for dataset in spec.datasets:
        names.check_text(dataset, "spec.datasets", 255)
    if name != "dataset_status":
        return
    if spec.op != "EQ" or spec.threshold not in range(6):
        raise refusals.invalid_field(
            "spec.threshold",
            "dataset_status takes op EQ and a threshold of 0 initializing, 1 ready, 2 disabled, "
            "3 error, 4 refreshing or 5 shutting down",
        )
    if not spec.datasets:
        raise refusals.invalid_field("spec.datasets", "name the dataset, or up to 20 datasets")


@dataclass(frozen=True, slots=True)
class Channels:
    """The channels that the installation can send by."""

    has_email: bool = False
    has_slack: bool = False
    outside: Outside = field(default_factory=Outside)


def check_targets(targets: Mapping[str, Any], channels: Channels) -> None:
    """Check where the notices of a monitor or reaction go.

    Raises:
        RefusedError: there is none, one is wrong, or the installation cannot send by it.
    """
    if not targets:
        raise refusals.invalid_field("targets", "give at least one of email, slack and http")
    if (email := targets.get("email")) is not None:
        _check_email(email, channels)
    if (slack := targets.get("slack")) is not None:
        if not channels.has_slack:
            raise refusals.invalid_field(
                "targets.slack", "this installation has no Slack token", "slack_not_configured"
            )
        if not _CHANNEL.fullmatch(slack["channelId"]):
            raise refusals.invalid_field(
                "targets.slack.channelId", "must be the id of a channel, such as C012AB3CD"
            )
    if (http := targets.get("http")) is not None:
        addresses.check_url(http["url"], channels.outside, "targets.http.url")
        for field in ("token", "signing_secret"):
            if http.get(field) is not None and not _TOKEN.fullmatch(http[field]):
                raise refusals.invalid_field(
                    f"targets.http.{field}", "must be 1 to 4,096 visible ASCII characters"
                )


def _check_email(email: Mapping[str, Any], channels: Channels) -> None:
    if not channels.has_email:
        raise refusals.invalid_field(
            "targets.email", "this installation has no mail server", "email_not_configured"
        )
    emails, recipients = email.get("emails", []), email.get("recipientUserIds", [])
    if not emails and not recipients:
        raise refusals.invalid_field("targets.email", "give emails or recipientUserIds")
    for address in emails:
        if len(address) > 254 or not _EMAIL.fullmatch(address):
            raise refusals.invalid_field("targets.email.emails", "must be e-mail addresses")
