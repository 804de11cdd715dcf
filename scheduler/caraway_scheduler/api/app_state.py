"""What routes read from the state of the application."""

from typing import cast

from starlette.requests import Request

from caraway_scheduler.services import Services


def services(request: Request) -> Services:
    """Return the parts of the scheduler that answers the request."""
    return cast(Services, request.app.state.services)
