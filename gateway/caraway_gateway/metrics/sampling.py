"""Takes the samples of the last hour from the counters that the metrics page shows."""

import time

from caraway_gateway.services import Services
from caraway_scheduler.history.recent import Sample


def take(services: Services) -> None:
    """Add a sample of now."""
    services.recent.add(sample(services, time.time_ns() // 1_000_000))


def sample(services: Services, at_ms: int) -> Sample:
    """Read the counters of this process, and the state of the executors."""
    tallies, executors = services.tallies, services.dispatch.executors()
    counters = {
        "statements": sum(tallies.query_executions.values()),
        "failures": sum(tallies.query_failures.values()),
        "busy_ms": sum(tallies.query_durations.sums_ms.values()),
        "rows": sum(tallies.query_returned_rows.values()),
        "bytes": sum(tallies.query_returned_bytes.values()),
        "requests": sum(tallies.http_requests.values()),
    }
    gauges = {
        "running": len(services.queries.active),
        "queued": services.queries.admission.queued,
        "memory_used_bytes": sum(each.memory_used_bytes for each in executors),
        "memory_bytes": sum(each.memory_bytes for each in executors),
        "executors_ready": sum(each.is_ready for each in executors),
        "tasks": sum(each.active_tasks for each in executors),
    }
    return Sample(at_ms, counters, gauges)
