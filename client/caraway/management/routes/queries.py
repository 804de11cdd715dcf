"""Operations on queries, made by `tests.kit.management_methods`."""

from typing import Any

from caraway.management.calls import (
    Call,
    Content,
    Document,
    Nothing,
    Operations,
    Text,
    members,
    part,
)


class QueriesRoutes(Operations[Document, Text, Content, Nothing]):
    """Operations on queries."""

    def list_queries(
        self,
        *,
        status: str | None = None,
        limit: int | None = None,
        project_id: str | None = None,
        x_project_id: str | None = None,
    ) -> Document:
        """List queries that were submitted to the runtime of a project through this service."""
        return self._object(
            Call(
                "GET",
                "/v1/queries",
                query={"status": status, "limit": limit, "project_id": project_id},
                headers={"x-project-id": x_project_id},
                names_org=True,
            )
        )

    def submit_query(
        self,
        *,
        sql: str,
        parameters: Any | None = None,
        timeout_seconds: int | None = None,
        maximum_size: int | None = None,
        project_id: str | None = None,
        x_project_id: str | None = None,
    ) -> Document:
        """Submit a query to the runtime of a project."""
        return self._object(
            Call(
                "POST",
                "/v1/queries",
                query={"project_id": project_id},
                body=members(
                    {"sql": sql},
                    optional={
                        "parameters": parameters,
                        "timeout_seconds": timeout_seconds,
                        "maximum_size": maximum_size,
                    },
                ),
                headers={"x-project-id": x_project_id},
                names_org=True,
                has_key=False,
            )
        )

    def get_query(
        self, query_id: str, *, project_id: str | None = None, x_project_id: str | None = None
    ) -> Document:
        """Return a query with the first part of its result."""
        return self._object(
            Call(
                "GET",
                f"/v1/queries/{part(query_id)}",
                query={"project_id": project_id},
                headers={"x-project-id": x_project_id},
                names_org=True,
            )
        )

    def get_query_status(
        self, query_id: str, *, project_id: str | None = None, x_project_id: str | None = None
    ) -> Document:
        """Return the status of a query."""
        return self._object(
            Call(
                "GET",
                f"/v1/queries/{part(query_id)}/status",
                query={"project_id": project_id},
                headers={"x-project-id": x_project_id},
                names_org=True,
            )
        )

    def get_query_results(
        self,
        query_id: str,
        *,
        partition: int | None = None,
        format: str | None = None,
        project_id: str | None = None,
        x_project_id: str | None = None,
    ) -> Document:
        """Return a part of the result of a query."""
        return self._object(
            Call(
                "GET",
                f"/v1/queries/{part(query_id)}/results",
                query={"partition": partition, "format": format, "project_id": project_id},
                headers={"x-project-id": x_project_id},
                names_org=True,
            )
        )

    def get_query_chunk(
        self,
        query_id: str,
        index: int,
        *,
        project_id: str | None = None,
        x_project_id: str | None = None,
    ) -> Document:
        """Return a part of the result of a query."""
        return self._object(
            Call(
                "GET",
                f"/v1/queries/{part(query_id)}/results/chunks/{part(index)}",
                query={"project_id": project_id},
                headers={"x-project-id": x_project_id},
                names_org=True,
            )
        )

    def cancel_query(
        self, query_id: str, *, project_id: str | None = None, x_project_id: str | None = None
    ) -> Document:
        """Cancel a query."""
        return self._object(
            Call(
                "POST",
                f"/v1/queries/{part(query_id)}/cancel",
                query={"project_id": project_id},
                headers={"x-project-id": x_project_id},
                names_org=True,
                has_key=False,
            )
        )

    def list_queries_of_project(
        self, project_id: int, *, status: str | None = None, limit: int | None = None
    ) -> Document:
        """List queries that were submitted to the runtime of a project through this service."""
        return self._object(
            Call(
                "GET",
                f"/v1/projects/{part(project_id)}/queries",
                query={"status": status, "limit": limit},
                names_org=True,
            )
        )

    def submit_query_of_project(
        self,
        project_id: int,
        *,
        sql: str,
        parameters: Any | None = None,
        timeout_seconds: int | None = None,
        maximum_size: int | None = None,
    ) -> Document:
        """Submit a query to the runtime of a project."""
        return self._object(
            Call(
                "POST",
                f"/v1/projects/{part(project_id)}/queries",
                body=members(
                    {"sql": sql},
                    optional={
                        "parameters": parameters,
                        "timeout_seconds": timeout_seconds,
                        "maximum_size": maximum_size,
                    },
                ),
                names_org=True,
                has_key=False,
            )
        )

    def get_query_of_project(self, project_id: int, query_id: str) -> Document:
        """Return a query with the first part of its result."""
        return self._object(
            Call("GET", f"/v1/projects/{part(project_id)}/queries/{part(query_id)}", names_org=True)
        )

    def get_query_status_of_project(self, project_id: int, query_id: str) -> Document:
        """Return the status of a query."""
        return self._object(
            Call(
                "GET",
                f"/v1/projects/{part(project_id)}/queries/{part(query_id)}/status",
                names_org=True,
            )
        )

    def get_query_results_of_project(
        self,
        project_id: int,
        query_id: str,
        *,
        partition: int | None = None,
        format: str | None = None,
    ) -> Document:
        """Return a part of the result of a query."""
        return self._object(
            Call(
                "GET",
                f"/v1/projects/{part(project_id)}/queries/{part(query_id)}/results",
                query={"partition": partition, "format": format},
                names_org=True,
            )
        )

    def get_query_chunk_of_project(self, project_id: int, query_id: str, index: int) -> Document:
        """Return a part of the result of a query."""
        return self._object(
            Call(
                "GET",
                f"/v1/projects/{part(project_id)}/queries/{part(query_id)}/results/chunks/{part(index)}",
                names_org=True,
            )
        )

    def cancel_query_of_project(self, project_id: int, query_id: str) -> Document:
        """Cancel a query."""
        return self._object(
            Call(
                "POST",
                f"/v1/projects/{part(project_id)}/queries/{part(query_id)}/cancel",
                names_org=True,
                has_key=False,
            )
        )
