"""The operations of the management API, made by `tests.kit.management_methods`."""

from caraway.management.calls import Content, Document, Nothing, Text
from caraway.management.routes.activity import ActivityRoutes
from caraway.management.routes.api_keys import ApiKeysRoutes
from caraway.management.routes.deployments import DeploymentsRoutes
from caraway.management.routes.device_sign_in import DeviceSignInRoutes
from caraway.management.routes.health import HealthRoutes
from caraway.management.routes.limits import LimitsRoutes
from caraway.management.routes.members import MembersRoutes
from caraway.management.routes.metrics import MetricsRoutes
from caraway.management.routes.monitors import MonitorsRoutes
from caraway.management.routes.oauth import OauthRoutes
from caraway.management.routes.oauth_clients import OauthClientsRoutes
from caraway.management.routes.organizations import OrganizationsRoutes
from caraway.management.routes.places import PlacesRoutes
from caraway.management.routes.projects import ProjectsRoutes
from caraway.management.routes.queries import QueriesRoutes
from caraway.management.routes.reactions import ReactionsRoutes
from caraway.management.routes.secrets import SecretsRoutes
from caraway.management.routes.sessions import SessionsRoutes
from caraway.management.routes.tokens import TokensRoutes
from caraway.management.routes.users import UsersRoutes


class Routes(
    ActivityRoutes[Document, Text, Content, Nothing],
    ApiKeysRoutes[Document, Text, Content, Nothing],
    DeploymentsRoutes[Document, Text, Content, Nothing],
    DeviceSignInRoutes[Document, Text, Content, Nothing],
    HealthRoutes[Document, Text, Content, Nothing],
    LimitsRoutes[Document, Text, Content, Nothing],
    MembersRoutes[Document, Text, Content, Nothing],
    MetricsRoutes[Document, Text, Content, Nothing],
    MonitorsRoutes[Document, Text, Content, Nothing],
    OauthRoutes[Document, Text, Content, Nothing],
    OauthClientsRoutes[Document, Text, Content, Nothing],
    OrganizationsRoutes[Document, Text, Content, Nothing],
    PlacesRoutes[Document, Text, Content, Nothing],
    ProjectsRoutes[Document, Text, Content, Nothing],
    QueriesRoutes[Document, Text, Content, Nothing],
    ReactionsRoutes[Document, Text, Content, Nothing],
    SecretsRoutes[Document, Text, Content, Nothing],
    SessionsRoutes[Document, Text, Content, Nothing],
    TokensRoutes[Document, Text, Content, Nothing],
    UsersRoutes[Document, Text, Content, Nothing],
):
    """All operations. The types are those of answers, or awaitables of them."""
