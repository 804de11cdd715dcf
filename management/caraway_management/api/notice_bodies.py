"""The bodies that monitors and reactions have in common: where notices go."""

from typing import Annotated, Literal

from pydantic import Field

from caraway_management.api.bodies import Body
from caraway_management.domain import monitors

LongText = Annotated[str, Field(max_length=2_048)]


class EmailTarget(Body):
    """Sends e-mail to addresses, and to members of the organization."""

    emails: Annotated[list[str], Field(max_length=monitors.MOST_EMAILS)] = Field(
        default_factory=list
    )
    recipientUserIds: Annotated[list[int], Field(max_length=monitors.MOST_RECIPIENTS)] = Field(
        default_factory=list
    )


class SlackTarget(Body):
    """Posts to a channel of Slack."""

    channelId: Annotated[str, Field(max_length=64)]


class HttpTarget(Body):
    """Sends a webhook, signed as Standard Webhooks say."""

    url: LongText
    method: Literal["POST", "PUT", "PATCH"] = "POST"
    token: Annotated[
        str | None,
        Field(max_length=4_096, description="Sent as a bearer token. It is never shown."),
    ] = None
    signing_secret: Annotated[
        str | None,
        Field(
            max_length=256,
            description="Only in Caraway: `whsec_` and a key in base64. Without one, one is made, "
            "and shown in the reply this once.",
        ),
    ] = None


class Targets(Body):
    """Where notices go: at most one of each kind, and at least one."""

    email: EmailTarget | None = None
    slack: SlackTarget | None = None
    http: HttpTarget | None = None
