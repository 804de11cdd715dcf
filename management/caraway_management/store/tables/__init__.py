"""The tables. Relations are ids; rows of other tables are never loaded by attribute access."""

from caraway_management.store.tables.accounts import (
    Attempts,
    AuthorizationCode,
    DeviceSignIn,
    Identity,
    OAuthClient,
    PortalSession,
    SignIn,
    SigningKey,
    Token,
    User,
)
from caraway_management.store.tables.base import Base
from caraway_management.store.tables.monitoring import MetricSample, Monitor, Reaction
from caraway_management.store.tables.organizations import Invitation, Member, Org, PlanRow
from caraway_management.store.tables.projects import Deployment, DeploymentLog, Project
from caraway_management.store.tables.sealed import ApiKey, DataKey, Secret, SecretLink
from caraway_management.store.tables.work import Activity, IdempotentAnswer, Lease, OutboxEntry

__all__ = [
    "Activity",
    "ApiKey",
    "Attempts",
    "AuthorizationCode",
    "Base",
    "DataKey",
    "Deployment",
    "DeploymentLog",
    "DeviceSignIn",
    "IdempotentAnswer",
    "Identity",
    "Invitation",
    "Lease",
    "Member",
    "MetricSample",
    "Monitor",
    "OAuthClient",
    "Org",
    "OutboxEntry",
    "PlanRow",
    "PortalSession",
    "Project",
    "Reaction",
    "Secret",
    "SecretLink",
    "SignIn",
    "SigningKey",
    "Token",
    "User",
]
