"""The error of each status of the Kubernetes API, and whether a retry would fail too."""

import pytest

from caraway_kube.api import errors


@pytest.mark.parametrize(
    ("status", "kind", "is_lasting"),
    [
        (400, errors.RequestRejectedError, True),
        (401, errors.KubeError, False),
        (403, errors.RequestRejectedError, True),
        (404, errors.ObjectNotFoundError, False),
        (409, errors.ConflictError, False),
        (410, errors.ExpiredError, False),
        (413, errors.RequestRejectedError, True),
        (418, errors.KubeError, False),
        (422, errors.ObjectInvalidError, True),
        (429, errors.ApiUnavailableError, False),
        (500, errors.ApiUnavailableError, False),
        (504, errors.ApiUnavailableError, False),
        (501, errors.KubeError, False),
    ],
)
def test_statuses(status: int, kind: type[errors.KubeError], is_lasting: bool) -> None:
    found = errors.of_status(status, "PUT pods/a", "no")
    assert type(found) is kind
    assert found.is_lasting is is_lasting
    assert found.message == f"Kubernetes answered {status} to PUT pods/a: no"


def test_a_conflict_with_an_object_that_ends_is_one() -> None:
    assert issubclass(errors.ObjectTerminatingError, errors.ConflictError)
