"""The operations of the management API, made by `tests.kit.management_methods`."""

from caraway.management.calls import Content, Document, Nothing, Text
from caraway.management.routes.accounts import AccountsRoutes
from caraway.management.routes.deployments import DeploymentsRoutes
from caraway.management.routes.installations import InstallationsRoutes
from caraway.management.routes.monitors import MonitorsRoutes
from caraway.management.routes.oauth import OauthRoutes
from caraway.management.routes.organizations import OrganizationsRoutes
from caraway.management.routes.projects import ProjectsRoutes
from caraway.management.routes.queries import QueriesRoutes
from caraway.management.routes.reactions import ReactionsRoutes
from caraway.management.routes.secrets import SecretsRoutes


class Routes(
    AccountsRoutes[Document, Text, Content, Nothing],
    DeploymentsRoutes[Document, Text, Content, Nothing],
    InstallationsRoutes[Document, Text, Content, Nothing],
    MonitorsRoutes[Document, Text, Content, Nothing],
    OauthRoutes[Document, Text, Content, Nothing],
    OrganizationsRoutes[Document, Text, Content, Nothing],
    ProjectsRoutes[Document, Text, Content, Nothing],
    QueriesRoutes[Document, Text, Content, Nothing],
    ReactionsRoutes[Document, Text, Content, Nothing],
    SecretsRoutes[Document, Text, Content, Nothing],
):
    """All operations. The types are those of answers, or awaitables of them."""
