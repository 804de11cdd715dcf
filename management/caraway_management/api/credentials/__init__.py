"""The routes of users and their credentials."""

from fastapi import APIRouter

from caraway_management.api.credentials import (
    authorize,
    devices,
    oauth,
    oauth_clients,
    oidc,
    sessions,
    sign_in,
    tokens,
    users,
    whoami,
)

ROUTERS: tuple[APIRouter, ...] = (
    authorize.router,
    devices.router,
    oauth.router,
    oauth_clients.router,
    oidc.router,
    sessions.router,
    sign_in.router,
    tokens.router,
    users.router,
    whoami.router,
)
"""All of them."""
