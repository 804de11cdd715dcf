"""What a `CarawayCluster` says."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field

from caraway_operator.resources.base import (
    Annotations,
    ConfigMapKey,
    Labels,
    Object,
    ObjectName,
    Objects,
    Path,
    SecretKey,
    Section,
    StoreName,
    Text,
    as_tuple,
    rules,
)
from caraway_operator.resources.pods import Executor, Head, Image, Scheduler, State

HostName = Annotated[str, Field(min_length=1, max_length=253, pattern=r"^[A-Za-z0-9*.:_-]+$")]
# It names a file in the pod as well.
ParamName = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z_][A-Za-z0-9_-]*$")]
Cidr = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[0-9a-fA-F.:]+/[0-9]{1,3}$")]


_REDIS_URL = "^rediss?://[^@ ]+$"


def _without_password(url: str) -> str:
    if not re.match(_REDIS_URL, url):
        raise ValueError("must be redis://HOST:PORT or rediss://HOST:PORT without a password")
    return url


class ManifestFrom(Section):
    """Where the manifest is, if it is not written here."""

    config_map: ConfigMapKey = Field(description="A ConfigMap in the cluster's namespace.")


class SecretMount(Section):
    """A Secret whose keys the manifest refers to as `${NAME:KEY}`, and as `${secrets:KEY}`."""

    name: StoreName = Field(description="Name of the secret store.")
    secret_name: ObjectName = Field(description="Name of the Secret.")


class ApiKey(SecretKey):
    """An API key, from a Secret."""

    access: Literal["ro", "rw"] = Field(default="ro", description="Whether it may write.")


class Auth(Section):
    """Who may call."""

    api_keys: Annotated[tuple[ApiKey, ...], Field(max_length=64), BeforeValidator(as_tuple)] = (
        Field(
            default=(),
            description="Keys, beside those of the manifest; without any, anyone may call.",
        )
    )


class Token(Section):
    """The secret that the cluster's processes show to each other."""

    secret_name: ObjectName | None = Field(
        default=None, description="A Secret with the key `token`; one is made, if not given."
    )


class Tls(Section):
    """TLS of the HTTP and Flight ports."""

    enabled: bool = Field(default=False, description="Serve TLS.")
    secret_name: ObjectName | None = Field(
        default=None,
        description="A Secret with `tls.crt` and `tls.key`; the operator makes one, signed by a "
        "CA of the cluster, if not given.",
    )
    dns_names: Annotated[tuple[HostName, ...], Field(max_length=32), BeforeValidator(as_tuple)] = (
        Field(default=(), description="Further names in the certificate that the operator makes.")
    )


class Redis(Section):
    """A Redis or Valkey that is there already, for the state of schedulers and head."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            {
                "rule": "!(has(self.url) && has(self.urlFrom))",
                "message": "url and urlFrom exclude each other",
            },
            {
                "rule": "has(self.url) || has(self.urlFrom)",
                "message": "one of url and urlFrom is needed",
            },
            # Not a pattern of the field: the API server would show the URL, password included.
            {
                "rule": rf"!has(self.url) || self.url.matches('{_REDIS_URL}')",
                "message": "url must be redis://HOST:PORT or rediss://HOST:PORT without a "
                "password; one with a password belongs into a Secret, which urlFrom names",
            },
        )
    )

    url: Annotated[Text, AfterValidator(_without_password)] | None = Field(
        default=None,
        description="Its URL, without a password. Clusters that share one need a `?prefix=NAME`.",
    )
    url_from: SecretKey | None = Field(
        default=None, description="A Secret with its URL, which may hold a password."
    )


class SecretParam(SecretKey):
    """A parameter whose value is in a Secret."""

    param: ParamName = Field(description="Name of the parameter.")


class ResultStore(Section):
    """Where answers of jobs and accelerated datasets are kept, instead of the state's volume."""

    url: Path = Field(description="`s3://`, `gs://` or `abfss://`, or a folder mounted everywhere.")
    params: Annotated[dict[str, Text], Field(max_length=64)] = Field(
        default_factory=dict, description="Parameters of the object store."
    )
    secret_params: Annotated[
        tuple[SecretParam, ...], Field(max_length=32), BeforeValidator(as_tuple)
    ] = Field(default=(), description="Parameters from Secrets.")


class Service(Section):
    """How users reach the cluster.

    The Service of the cluster's name is always a ClusterIP. Another type makes a second one,
    `<cluster>-public`, which leaves the metrics port out.
    """

    type: Literal["ClusterIP", "NodePort", "LoadBalancer"] = Field(
        default="ClusterIP", description="Type of the Service for users."
    )
    annotations: Annotations = Field(
        default_factory=dict, description="Annotations of the Service for users."
    )
    labels: Labels = Field(default_factory=dict, description="Labels of the Service for users.")
    load_balancer_class: Text | None = Field(
        default=None, description="Class of the load balancer."
    )
    load_balancer_source_ranges: Annotated[
        tuple[Cidr, ...], Field(max_length=64), BeforeValidator(as_tuple)
    ] = Field(default=(), description="Networks that the load balancer lets in.")
    external_traffic_policy: Literal["Cluster", "Local"] | None = Field(
        default=None, description="Whether clients' addresses are kept (`Local`)."
    )


class Network(Section):
    """Who may talk to whom."""

    policies: bool = Field(default=True, description="Make NetworkPolicies.")
    clients: Objects | None = Field(
        default=None,
        description="Who may use HTTP and Flight (networking/v1 NetworkPolicyPeer); anyone, if "
        "not given.",
    )
    metrics: Objects | None = Field(
        default=None,
        description="Who may read metrics (networking/v1 NetworkPolicyPeer); anyone, if not given.",
    )
    egress: Objects | None = Field(
        default=None,
        description="Where pods may connect to beside the cluster and DNS "
        "(networking/v1 NetworkPolicyEgressRule); anywhere, if not given.",
    )


class ServiceAccount(Section):
    """The identity of schedulers and executors. It has no rights in Kubernetes."""

    create: bool = Field(default=True, description="Make it.")
    name: ObjectName | None = Field(
        default=None, description="Its name; the cluster's, if not given."
    )
    annotations: Annotations = Field(
        default_factory=dict, description="Annotations, such as the role of a cloud."
    )


class Monitoring(Section):
    """Objects of the Prometheus operator; they are made where their kind exists."""

    service_monitor: bool = Field(
        default=False, description="Make a ServiceMonitor of the schedulers."
    )
    pod_monitor: bool = Field(default=False, description="Make a PodMonitor of the executors.")
    interval: Annotated[str, Field(pattern=r"^[0-9]{1,4}(ms|s|m)$", max_length=8)] = Field(
        default="30s", description="How often metrics are read."
    )
    labels: Labels = Field(
        default_factory=dict, description="Labels by which Prometheus finds the monitors."
    )


class UpdateStrategy(Section):
    """How a new image or manifest is rolled out."""

    progress_deadline_seconds: Annotated[int, Field(ge=30, le=86400)] = Field(
        default=900, description="How long one step may take before the rollout stops."
    )
    min_ready_executors: Annotated[int, Field(ge=0, le=1000)] | None = Field(
        default=None,
        description="Executors that must be ready before the next is replaced; all but one, if "
        "not given.",
    )


class ClusterSpec(Section):
    """A cluster: what it serves, and what it runs on."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            {
                "rule": "!(has(self.manifest) && has(self.manifestFrom))",
                "message": "manifest and manifestFrom exclude each other",
            },
            {
                "rule": "has(self.manifest) || has(self.manifestFrom)",
                "message": "one of manifest and manifestFrom is needed",
            },
        )
    )

    organization: (
        Annotated[str, Field(max_length=255, pattern=r"^[A-Za-z0-9._-]{1,255}$")] | None
    ) = Field(default=None, description="Whose limits apply.")
    paused: bool = Field(default=False, description="The operator leaves everything as it is.")
    stopped: bool = Field(default=False, description="No pods run; volumes and secrets stay.")
    log_format: Literal["json", "text"] = Field(default="json", description="Form of log lines.")
    image: Image = Field(default=Image(), description="The image of all pods.")
    manifest: Object | None = Field(
        default=None, description="The manifest, as `caraway run` takes it; see manifest.md."
    )
    manifest_from: ManifestFrom | None = Field(default=None, description="Where the manifest is.")
    head: Head = Field(default=Head(), description="The head.")
    scheduler: Scheduler = Field(default=Scheduler(), description="The schedulers.")
    executor: Executor = Field(default=Executor(), description="The executors.")
    state: State = Field(default=State(), description="Redis and store that the operator makes.")
    redis: Redis | None = Field(
        default=None, description="A Redis that is there; if not given, one is made."
    )
    result_store: ResultStore | None = Field(
        default=None, description="Where answers are kept; on the state's volume, if not given."
    )
    secrets: Annotated[tuple[SecretMount, ...], Field(max_length=32), BeforeValidator(as_tuple)] = (
        Field(default=(), description="Secrets that the manifest refers to.")
    )
    auth: Auth = Field(default=Auth(), description="Who may call.")
    token: Token = Field(default=Token(), description="The cluster's own secret.")
    tls: Tls = Field(default=Tls(), description="TLS of the ports for users.")
    service: Service = Field(default=Service(), description="How users reach the cluster.")
    network: Network = Field(default=Network(), description="Who may talk to whom.")
    service_account: ServiceAccount = Field(
        default=ServiceAccount(), description="The identity of schedulers and executors."
    )
    monitoring: Monitoring = Field(default=Monitoring(), description="Objects for Prometheus.")
    update_strategy: UpdateStrategy = Field(
        default=UpdateStrategy(), description="How changes are rolled out."
    )
