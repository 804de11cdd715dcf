"""Operations on installations, made by `tests.kit.management_methods`."""

from caraway.management.calls import Call, Content, Document, Nothing, Operations, Text


class InstallationsRoutes(Operations[Document, Text, Content, Nothing]):
    """Operations on installations."""

    def get_health(self) -> Document:
        """Say that the process serves."""
        return self._object(Call("GET", "/v1/health"))

    def list_regions(self, *, env: str | None = None) -> Document:
        """List the regions, and the default one."""
        return self._object(Call("GET", "/v1/regions", query={"env": env}, names_org=True))

    def list_clusters(self) -> Document:
        """List the clusters that the organization may use."""
        return self._object(Call("GET", "/v1/clusters", names_org=True))

    def list_container_images(self, *, channel: str | None = None) -> Document:
        """List the images of the runtime; the newest of a channel, and the default one, come
        first.
        """
        return self._object(
            Call("GET", "/v1/container-images", query={"channel": channel}, names_org=True)
        )
