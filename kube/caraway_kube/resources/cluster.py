"""The spec of a `CarawayCluster`."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field

from caraway_kube.resources.base import (
    Annotations,
    ConfigMapKey,
    JsonObject,
    JsonObjects,
    Labels,
    ObjectName,
    Path,
    SecretKey,
    SpecSection,
    StoreName,
    Text,
    as_tuple,
    rules,
)
from caraway_kube.resources.pods import (
    ExecutorSpec,
    HeadSpec,
    ImageSpec,
    SchedulerSpec,
    StateSpec,
)

HostName = Annotated[str, Field(min_length=1, max_length=253, pattern=r"^[A-Za-z0-9*.:_-]+$")]
# Also the name of a file in the pod.
ParamName = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z_][A-Za-z0-9_-]*$")]
Cidr = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[0-9a-fA-F.:]+/[0-9]{1,3}$")]


_REDIS_URL = "^rediss?://[^@ ]+$"


def _without_password(url: str) -> str:
    if not re.match(_REDIS_URL, url) or re.search(r"\s", url):
        raise ValueError("must be redis://HOST:PORT or rediss://HOST:PORT without a password")
    return url


class ManifestFrom(SpecSection):
    """The source of a manifest that is not inline."""

    config_map: ConfigMapKey = Field(description="A ConfigMap in the cluster's namespace.")


class SecretMount(SpecSection):
    """A Secret whose keys the manifest refers to as `${NAME:KEY}` or `${secrets:KEY}`."""

    name: StoreName = Field(description="Name of the secret store.")
    secret_name: ObjectName = Field(description="Name of the Secret.")


class ApiKeySpec(SecretKey):
    """An API key from a Secret."""

    access: Literal["ro", "rw"] = Field(
        default="ro", description="Read-only (`ro`) or read-write (`rw`) access."
    )


class AuthSpec(SpecSection):
    """Authentication of clients."""

    api_keys: Annotated[tuple[ApiKeySpec, ...], Field(max_length=64), BeforeValidator(as_tuple)] = (
        Field(
            default=(),
            description="API keys in addition to those of the manifest. Without any key, "
            "authentication is off.",
        )
    )


class TokenSpec(SpecSection):
    """The token by which the cluster's processes authenticate to each other."""

    secret_name: ObjectName | None = Field(
        default=None, description="A Secret with the key `token`. Created by default."
    )


class TlsSpec(SpecSection):
    """TLS for the HTTP and Flight ports."""

    enabled: bool = Field(default=False, description="Serve TLS.")
    secret_name: ObjectName | None = Field(
        default=None,
        description="A Secret with `tls.crt` and `tls.key`. By default, the operator creates one "
        "that is signed by a CA of the cluster.",
    )
    dns_names: Annotated[tuple[HostName, ...], Field(max_length=32), BeforeValidator(as_tuple)] = (
        Field(default=(), description="Additional names in the certificate of the operator.")
    )


class RedisSpec(SpecSection):
    """An existing Redis or Valkey for the state of schedulers and head."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            {
                "rule": "!(has(self.url) && has(self.urlFrom))",
                "message": "url and urlFrom are mutually exclusive",
            },
            {
                "rule": "has(self.url) || has(self.urlFrom)",
                "message": "one of url and urlFrom is required",
            },
            # Not a pattern of the field: the API server would quote the URL with its password.
            {
                "rule": rf"!has(self.url) || self.url.matches('{_REDIS_URL}')",
                "message": "url must be redis://HOST:PORT or rediss://HOST:PORT without a "
                "password; put a URL with a password into a Secret, and refer to it in urlFrom",
            },
        )
    )

    url: Annotated[Text, AfterValidator(_without_password)] | None = Field(
        default=None,
        description="URL without a password. Clusters that share a Redis need a `?prefix=NAME`.",
    )
    url_from: SecretKey | None = Field(
        default=None, description="A Secret with the URL, which may contain a password."
    )


class SecretParam(SecretKey):
    """A parameter with its value in a Secret."""

    param: ParamName = Field(description="Name of the parameter.")


class ResultStoreSpec(SpecSection):
    """Storage for results of jobs and for accelerated datasets, instead of the state's volume."""

    url: Path = Field(
        description="A URL with `s3://`, `gs://` or `abfss://`, or a directory that is mounted in "
        "all pods."
    )
    params: Annotated[dict[str, Text], Field(max_length=64)] = Field(
        default_factory=dict, description="Parameters of the object store."
    )
    secret_params: Annotated[
        tuple[SecretParam, ...], Field(max_length=32), BeforeValidator(as_tuple)
    ] = Field(default=(), description="Parameters from Secrets.")


class ServiceSpec(SpecSection):
    """The Service for clients.

    The Service with the cluster's name always has the type ClusterIP. For another type, a second
    Service `<cluster>-public` is created, without the metrics port.
    """

    type: Literal["ClusterIP", "NodePort", "LoadBalancer"] = Field(
        default="ClusterIP", description="Type of the Service for clients."
    )
    annotations: Annotations = Field(
        default_factory=dict, description="Annotations of the Service for clients."
    )
    labels: Labels = Field(default_factory=dict, description="Labels of the Service for clients.")
    load_balancer_class: Text | None = Field(
        default=None, description="Class of the load balancer."
    )
    load_balancer_source_ranges: Annotated[
        tuple[Cidr, ...], Field(max_length=64), BeforeValidator(as_tuple)
    ] = Field(default=(), description="Networks from which the load balancer accepts clients.")
    external_traffic_policy: Literal["Cluster", "Local"] | None = Field(
        default=None, description="`Local` preserves the addresses of clients."
    )


class NetworkSpec(SpecSection):
    """NetworkPolicies of the cluster."""

    policies: bool = Field(default=True, description="Create NetworkPolicies.")
    clients: JsonObjects | None = Field(
        default=None,
        description="Peers that may use HTTP and Flight (networking/v1 NetworkPolicyPeer). All by "
        "default.",
    )
    metrics: JsonObjects | None = Field(
        default=None,
        description="Peers that may read metrics (networking/v1 NetworkPolicyPeer). All by "
        "default.",
    )
    egress: JsonObjects | None = Field(
        default=None,
        description="Destinations of pods in addition to the cluster and DNS "
        "(networking/v1 NetworkPolicyEgressRule). All by default.",
    )


class ServiceAccountSpec(SpecSection):
    """The ServiceAccount of schedulers and executors. It has no permissions in Kubernetes."""

    create: bool = Field(default=True, description="Create the ServiceAccount.")
    name: ObjectName | None = Field(
        default=None, description="Name. By default the name of the cluster."
    )
    annotations: Annotations = Field(
        default_factory=dict, description="Annotations, such as the role of a cloud provider."
    )


class MonitoringSpec(SpecSection):
    """Objects of the Prometheus operator. They are created if their kinds are installed."""

    service_monitor: bool = Field(
        default=False, description="Create a ServiceMonitor for the schedulers."
    )
    pod_monitor: bool = Field(default=False, description="Create a PodMonitor for the executors.")
    interval: Annotated[str, Field(pattern=r"^[0-9]{1,4}(ms|s|m)$", max_length=8)] = Field(
        default="30s", description="Scrape interval."
    )
    labels: Labels = Field(
        default_factory=dict, description="Labels by which Prometheus selects the monitors."
    )


class UpdateStrategySpec(SpecSection):
    """The rollout of a new image or manifest."""

    progress_deadline_seconds: Annotated[int, Field(ge=30, le=86400)] = Field(
        default=900, description="Time after which a step of the rollout has failed."
    )
    min_ready_executors: Annotated[int, Field(ge=0, le=1000)] | None = Field(
        default=None,
        description="Number of executors that must be ready before the next one is replaced. All "
        "but one by default.",
    )


class CarawayClusterSpec(SpecSection):
    """The spec of a cluster."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            {
                "rule": "!(has(self.manifest) && has(self.manifestFrom))",
                "message": "manifest and manifestFrom are mutually exclusive",
            },
            {
                "rule": "has(self.manifest) || has(self.manifestFrom)",
                "message": "one of manifest and manifestFrom is required",
            },
        )
    )

    organization: (
        Annotated[str, Field(max_length=255, pattern=r"^[A-Za-z0-9._-]{1,255}$")] | None
    ) = Field(default=None, description="Organization whose limits apply.")
    paused: bool = Field(default=False, description="Pause reconciliation.")
    stopped: bool = Field(default=False, description="Run no pods. Volumes and Secrets are kept.")
    log_format: Literal["json", "text"] = Field(default="json", description="Log format.")
    image: ImageSpec = Field(default=ImageSpec(), description="Image of all pods.")
    manifest: JsonObject | None = Field(
        default=None, description="The manifest, as for `caraway run`; see manifest.md."
    )
    manifest_from: ManifestFrom | None = Field(default=None, description="Source of the manifest.")
    head: HeadSpec = Field(default=HeadSpec(), description="The head.")
    scheduler: SchedulerSpec = Field(default=SchedulerSpec(), description="The schedulers.")
    executor: ExecutorSpec = Field(default=ExecutorSpec(), description="The executors.")
    state: StateSpec = Field(default=StateSpec(), description="The managed Redis and result store.")
    redis: RedisSpec | None = Field(
        default=None, description="An existing Redis. By default the operator runs one."
    )
    result_store: ResultStoreSpec | None = Field(
        default=None, description="Storage for results. By default the state's volume."
    )
    secrets: Annotated[tuple[SecretMount, ...], Field(max_length=32), BeforeValidator(as_tuple)] = (
        Field(default=(), description="Secrets that the manifest refers to.")
    )
    auth: AuthSpec = Field(default=AuthSpec(), description="Authentication of clients.")
    token: TokenSpec = Field(
        default=TokenSpec(), description="The token of the cluster's processes."
    )
    tls: TlsSpec = Field(default=TlsSpec(), description="TLS for clients.")
    service: ServiceSpec = Field(default=ServiceSpec(), description="The Service for clients.")
    network: NetworkSpec = Field(default=NetworkSpec(), description="NetworkPolicies.")
    service_account: ServiceAccountSpec = Field(
        default=ServiceAccountSpec(), description="The ServiceAccount of schedulers and executors."
    )
    monitoring: MonitoringSpec = Field(
        default=MonitoringSpec(), description="Objects for Prometheus."
    )
    update_strategy: UpdateStrategySpec = Field(
        default=UpdateStrategySpec(), description="The rollout of changes."
    )
