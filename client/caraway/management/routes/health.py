"""Operations on health, made by `tests.kit.management_methods`."""

from caraway.management.calls import (
    Call,
    Content,
    Document,
    Nothing,
    Operations,
    Text,
)


class HealthRoutes(Operations[Document, Text, Content, Nothing]):
    """Operations on health."""

    def get_health(self) -> Document:
        """Say that the process serves."""
        return self._object(Call("GET", "/v1/health"))
