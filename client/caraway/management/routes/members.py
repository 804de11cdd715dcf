"""Operations on members, made by `tests.kit.management_methods`."""

from collections.abc import Sequence

from caraway.management.calls import (
    Call,
    Content,
    Document,
    Nothing,
    Operations,
    Text,
    members,
    part,
)


class MembersRoutes(Operations[Document, Text, Content, Nothing]):
    """Operations on members."""

    def list_members(self, *, limit: int | None = None, offset: int | None = None) -> Document:
        """List the members of the organization."""
        return self._object(
            Call("GET", "/v1/members", query={"limit": limit, "offset": offset}, names_org=True)
        )

    def add_member(self, *, username: str, roles: Sequence[str] | None = None) -> Document:
        """Make a user of the installation a member, with at most the role of the caller."""
        return self._object(
            Call(
                "POST",
                "/v1/members",
                body=members({"username": username}, optional={"roles": roles}),
                names_org=True,
            )
        )

    def get_member(self, user_id: int) -> Document:
        """Return a member."""
        return self._object(Call("GET", f"/v1/members/{part(user_id)}", names_org=True))

    def update_member(
        self, user_id: int, *, roles: Sequence[str], if_match: str | None = None
    ) -> Document:
        """Give a member another role. Owners are changed by themselves only."""
        return self._object(
            Call(
                "PATCH",
                f"/v1/members/{part(user_id)}",
                body={"roles": roles},
                headers={"if-match": if_match},
                names_org=True,
            )
        )

    def remove_member(self, user_id: int, *, if_match: str | None = None) -> Nothing:
        """Remove a member. Owners are removed by themselves only."""
        return self._nothing(
            Call(
                "DELETE",
                f"/v1/members/{part(user_id)}",
                headers={"if-match": if_match},
                names_org=True,
            )
        )

    def list_invitations(self, *, limit: int | None = None, offset: int | None = None) -> Document:
        """List the open invitations of the organization. Ours."""
        return self._object(
            Call("GET", "/v1/invitations", query={"limit": limit, "offset": offset}, names_org=True)
        )

    def create_invitation(self, *, email: str, roles: Sequence[str] | None = None) -> Document:
        """Invite a person for seven days. The `value` is shown once, for you to hand on. Ours.

        If the installation has a mail server, `is_mailed` is true: the address gets a link to
        join.
        """
        return self._object(
            Call(
                "POST",
                "/v1/invitations",
                body=members({"email": email}, optional={"roles": roles}),
                names_org=True,
            )
        )

    def revoke_invitation(self, invitation_id: int) -> Nothing:
        """Revoke an open invitation. Ours."""
        return self._nothing(
            Call("DELETE", f"/v1/invitations/{part(invitation_id)}", names_org=True)
        )

    def accept_invitation(self, *, value: str) -> Document:
        """Make the user of the credential a member of the organization that invites. Ours."""
        return self._object(Call("POST", "/v1/invitations/accept", body={"value": value}))
