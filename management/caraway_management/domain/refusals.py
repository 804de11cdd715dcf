"""The error of a request that the service refuses, with the spec's status and code."""

from collections.abc import Mapping, Sequence

from caraway_core.errors import CarawayError

Fields = Mapping[str, Sequence[str]]


class RefusedError(CarawayError):
    """A request that is refused: an HTTP status, a text, and a code where the spec has one."""

    def __init__(
        self,
        status: int,
        message: str,
        code: str | None = None,
        *,
        fields: Fields | None = None,
        form: Sequence[str] = (),
        headers: Mapping[str, str] | None = None,
        extra: Mapping[str, int | str] | None = None,
    ) -> None:
        """Take what is wrong with each field in `fields`, and with the whole body in `form`.

        `extra` are further members of the body of the answer, such as a limit.
        """
        super().__init__(message)
        self.status = status
        self.code = code
        self.fields = dict(fields or {})
        self.form = tuple(form)
        self.headers = dict(headers or {})
        self.extra = dict(extra or {})


def invalid(message: str, code: str | None = None, *, fields: Fields | None = None) -> RefusedError:
    """Return the refusal of a request that is wrong in itself: 400."""
    return RefusedError(400, message, code, fields=fields)


def invalid_field(field: str, message: str, code: str | None = None) -> RefusedError:
    """Return the refusal of one field of a body: 400."""
    return RefusedError(400, f"{field}: {message}", code, fields={field: [message]})


def unauthorized(message: str) -> RefusedError:
    """Return the refusal of a missing or invalid credential: 401."""
    return RefusedError(401, message, headers={"www-authenticate": 'Bearer realm="caraway"'})


def insufficient_scope(scope: str) -> RefusedError:
    """Return the refusal of a credential that lacks a scope: 403."""
    return RefusedError(403, f"Insufficient scope. Required: {scope}", "insufficient_scope")


def forbidden(message: str, code: str = "forbidden") -> RefusedError:
    """Return the refusal of what a role may not do: 403."""
    return RefusedError(403, message, code)


def not_found(what: str, name: object = "") -> RefusedError:
    """Return the refusal of a resource that does not exist, or that the caller cannot see: 404."""
    return RefusedError(404, f"{what} '{name}' not found" if name != "" else f"{what} not found")


def conflict(message: str, code: str | None = None) -> RefusedError:
    """Return the refusal of a change that the state of a resource does not allow: 409."""
    return RefusedError(409, message, code)


def over_limit(message: str) -> RefusedError:
    """Return the refusal of what the plan of the organization does not include: 403."""
    return RefusedError(403, message, "plan_limit")
