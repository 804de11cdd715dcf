"""Gives routes access to the application's state."""

from typing import cast

from starlette.requests import Request

from caraway_gateway.services import Services


def services(request: Request) -> Services:
    """Return the services of the scheduler that handles the request."""
    return cast(Services, request.app.state.services)
