"""The operations of the management API, made by `tests.kit.management_methods`."""

from caraway.management.calls import Content, Document, Nothing, Text
from caraway.management.routes.deployments import DeploymentsRoutes
from caraway.management.routes.health import HealthRoutes
from caraway.management.routes.limits import LimitsRoutes
from caraway.management.routes.monitors import MonitorsRoutes
from caraway.management.routes.organizations import OrganizationsRoutes
from caraway.management.routes.projects import ProjectsRoutes


class Routes(
    DeploymentsRoutes[Document, Text, Content, Nothing],
    HealthRoutes[Document, Text, Content, Nothing],
    LimitsRoutes[Document, Text, Content, Nothing],
    MonitorsRoutes[Document, Text, Content, Nothing],
    OrganizationsRoutes[Document, Text, Content, Nothing],
    ProjectsRoutes[Document, Text, Content, Nothing],
):
    """All operations. The types are those of answers, or awaitables of them."""
