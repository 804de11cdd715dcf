"""The route that takes change events, and its answers."""

import json

from tests.client.runtime import Answer

ROUTE = "POST /v1/datasets/orders/cdc"


def applied(count: int) -> Answer:
    return Answer(body=json.dumps({"applied": count, "dataset": "orders"}).encode())
