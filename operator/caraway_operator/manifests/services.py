"""Services: how users reach the cluster, and how its pods reach each other."""

from caraway_operator import naming
from caraway_operator.manifests.meta import Object, metadata
from caraway_operator.manifests.wanted import Wanted

_FOR_USERS = {"http": naming.HTTP_PORT, "flight": naming.FLIGHT_PORT}
_METRICS = {"metrics": naming.METRICS_PORT}


def objects(wanted: Wanted) -> list[Object]:
    """Return the Services of a cluster."""
    name = wanted.name
    made = [
        # The address stays when the pod is replaced: Ray looks names up once.
        _service(wanted, naming.of(name, naming.HEAD), naming.HEAD, {"gcs": naming.HEAD_PORT}),
        _service(wanted, name, naming.SCHEDULER, {**_FOR_USERS, **_METRICS}),
        _service(wanted, naming.of(name, naming.EXECUTOR), naming.EXECUTOR, _METRICS),
    ]
    # It is about starting: who joins asks the head before it is ready, and executors are
    # looked up by their StatefulSet alone.
    made[0]["spec"]["publishNotReadyAddresses"] = True
    made[2]["spec"].update(clusterIP="None", publishNotReadyAddresses=True)
    if ports := _state_ports(wanted):
        state = _service(wanted, naming.of(name, naming.STATE), naming.STATE, ports)
        # Two containers in one pod: the Redis must be found also while the store starts anew.
        state["spec"]["publishNotReadyAddresses"] = True
        made.append(state)
    if wanted.spec.service.type != "ClusterIP":
        made.append(_public(wanted))
    else:
        made[1]["metadata"] = _for_users(wanted, name)
    return made


def _state_ports(wanted: Wanted) -> dict[str, int]:
    return {
        **({"redis": naming.REDIS_PORT} if wanted.makes_redis else {}),
        **({"store": naming.STORE_PORT} if wanted.makes_store else {}),
    }


def _public(wanted: Wanted) -> Object:
    """The Service that is seen from outside: nobody there reads metrics, or drains executors."""
    given, name = wanted.spec.service, naming.public_service(wanted.name)
    made = _service(wanted, name, naming.SCHEDULER, _FOR_USERS)
    made["metadata"] = _for_users(wanted, name)
    made["spec"]["type"] = given.type
    if given.external_traffic_policy:
        made["spec"]["externalTrafficPolicy"] = given.external_traffic_policy
    if given.type == "LoadBalancer" and given.load_balancer_class:
        made["spec"]["loadBalancerClass"] = given.load_balancer_class
    if given.type == "LoadBalancer" and given.load_balancer_source_ranges:
        made["spec"]["loadBalancerSourceRanges"] = list(given.load_balancer_source_ranges)
    return made


def _for_users(wanted: Wanted, name: str) -> Object:
    given = wanted.spec.service
    return metadata(
        wanted, name, naming.SCHEDULER, labels=given.labels, annotations=given.annotations
    )


def _service(wanted: Wanted, name: str, component: str, ports: dict[str, int]) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(wanted, name, component),
        "spec": {
            "type": "ClusterIP",
            "selector": naming.selector(wanted.name, component),
            "ports": [
                {"name": port, "port": number, "targetPort": port, "protocol": "TCP"}
                for port, number in ports.items()
            ],
        },
    }
