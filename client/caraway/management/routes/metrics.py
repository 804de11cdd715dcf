"""Operations on metrics, made by `tests.kit.management_methods`."""

from caraway.management.calls import (
    Call,
    Content,
    Document,
    Nothing,
    Operations,
    Text,
    part,
)


class MetricsRoutes(Operations[Document, Text, Content, Nothing]):
    """Operations on metrics."""

    def get_metrics(self) -> Text:
        """Return the last metrics of the organization's projects in the form of Prometheus.

        Ours.
        """
        return self._text(Call("GET", "/v1/metrics", accept="text/plain", names_org=True))

    def get_project_metrics(self, project_id: int, *, window: str | None = None) -> Document:
        """Return the figures of a project's runtime over a window.

        A figure that is not known is null. `window`, `requests` and `points` are ours.
        """
        return self._object(
            Call(
                "GET",
                f"/v1/projects/{part(project_id)}/metrics",
                query={"window": window},
                names_org=True,
            )
        )
