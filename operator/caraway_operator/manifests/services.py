"""Services, for clients of the cluster and for its own pods."""

from caraway_kube import naming
from caraway_operator.manifests.desired import DesiredCluster
from caraway_operator.manifests.meta import Object, metadata

_FOR_USERS = {"http": naming.HTTP_PORT, "flight": naming.FLIGHT_PORT}
_POD_NAME = "statefulset.kubernetes.io/pod-name"
_METRICS = {"metrics": naming.METRICS_PORT}


def objects(desired: DesiredCluster) -> list[Object]:
    """Return the Services of a cluster."""
    name = desired.name
    resources = [
        # Not headless: Ray resolves names only once, so the address must not change.
        _service(
            desired, naming.object_name(name, naming.HEAD), naming.HEAD, {"gcs": naming.HEAD_PORT}
        ),
        _service(desired, name, naming.SCHEDULER, {**_FOR_USERS, **_METRICS}),
        _service(desired, naming.object_name(name, naming.EXECUTOR), naming.EXECUTOR, _METRICS),
    ]
    # Processes connect to the head before it is ready, and the Service of the executors only
    # provides the DNS names of the StatefulSet.
    resources[0]["spec"]["publishNotReadyAddresses"] = True
    resources[2]["spec"].update(clusterIP="None", publishNotReadyAddresses=True)
    if ports := _state_ports(desired):
        state = _service(desired, naming.object_name(name, naming.STATE), naming.STATE, ports)
        # Two containers in one pod: Redis must be reachable while the store restarts.
        state["spec"]["publishNotReadyAddresses"] = True
        resources.append(state)
    if desired.spec.service.type != "ClusterIP":
        resources.append(_public(desired))
    else:
        resources[1]["metadata"] = _for_users(desired, name)
    return [*resources, *_of_executors(desired)]


def _of_executors(desired: DesiredCluster) -> list[Object]:
    """Return a Service for each executor, by which clients reach just that one."""
    given = desired.spec.executor.flight
    if not given.enabled or given.service_type is None:
        return []
    made = []
    for ordinal in range(desired.executor_count):
        name = f"{naming.object_name(desired.name, naming.EXECUTOR)}-{ordinal}"
        service = _service(desired, name, naming.EXECUTOR, {"flight": naming.FLIGHT_PORT})
        service["metadata"] = metadata(
            desired, name, naming.EXECUTOR, annotations=given.service_annotations
        )
        service["spec"]["type"] = given.service_type
        service["spec"]["selector"][_POD_NAME] = name
        made.append(service)
    return made


def _state_ports(desired: DesiredCluster) -> dict[str, int]:
    return {
        **({"redis": naming.REDIS_PORT} if desired.makes_redis else {}),
        **({"store": naming.STORE_PORT} if desired.makes_store else {}),
    }


def _public(desired: DesiredCluster) -> Object:
    """Return the public Service, which leaves out metrics and internal routes."""
    given, name = desired.spec.service, naming.public_service(desired.name)
    resource = _service(desired, name, naming.SCHEDULER, _FOR_USERS)
    resource["metadata"] = _for_users(desired, name)
    resource["spec"]["type"] = given.type
    if given.external_traffic_policy:
        resource["spec"]["externalTrafficPolicy"] = given.external_traffic_policy
    if given.type == "LoadBalancer" and given.load_balancer_class:
        resource["spec"]["loadBalancerClass"] = given.load_balancer_class
    if given.type == "LoadBalancer" and given.load_balancer_source_ranges:
        resource["spec"]["loadBalancerSourceRanges"] = list(given.load_balancer_source_ranges)
    return resource


def _for_users(desired: DesiredCluster, name: str) -> Object:
    given = desired.spec.service
    return metadata(
        desired, name, naming.SCHEDULER, labels=given.labels, annotations=given.annotations
    )


def _service(desired: DesiredCluster, name: str, component: str, ports: dict[str, int]) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(desired, name, component),
        "spec": {
            "type": "ClusterIP",
            "selector": naming.component_selector(desired.name, component),
            "ports": [
                {"name": port, "port": number, "targetPort": port, "protocol": "TCP"}
                for port, number in ports.items()
            ],
        },
    }
