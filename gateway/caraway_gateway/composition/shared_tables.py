"""The quotas of tables that all callers of a scheduler share."""

from typing import Any

from caraway_assist.models.service import Models
from caraway_assist.search.service import SearchService
from caraway_core.concurrency.quotas import Quota, QuotaLimits
from caraway_core.manifest.values.runtime import QuotaSettings
from caraway_gateway.mcp.endpoint import McpEndpoint
from caraway_scheduler.history.tasks import TaskHistory
from caraway_scheduler.jobs.opening import Jobs
from caraway_scheduler.queries.cache import ResultsCache
from caraway_scheduler.queries.service import QueryService


def of_responses(settings: QuotaSettings) -> QuotaLimits:
    """Return the limits of stored responses."""
    return QuotaLimits(
        most_each=settings.max_responses, most_bytes_each=settings.max_responses_size_bytes
    )


def quotas(
    mcp: McpEndpoint,
    cache: ResultsCache | None,
    search: SearchService,
    history: TaskHistory,
    models: Models,
    jobs: Jobs,
    queries: QueryService,
) -> dict[str, Quota[object]]:
    """Return the quotas by table; those of listeners are added when these are made."""
    found: dict[str, Quota[Any]] = {
        "waiting_queries": queries.admission.quota,
        "mcp_sessions": mcp.sessions.quota,
        "task_history": history.quota,
        "jobs": jobs.kept.jobs,
        "job_results": jobs.kept.results,
        "responses": models.conversations.quota,
    }
    if cache is not None:
        found["results_cache"] = cache.quota
    if search.cache is not None:
        found["search_results_cache"] = search.cache.quota
    return found
