import pytest

from caraway_management.domain import forks
from caraway_management.domain.refusals import RefusedError


@pytest.mark.parametrize(
    ("wanted", "source"),
    [
        (None, None),
        ("s3://bucket/b", "s3://bucket/a"),
        ("s3://bucket/shop-2", "s3://bucket/shop"),
        ("s3://bucket-2/shop", "s3://bucket/shop"),
    ],
)
def test_places_apart_are_allowed(wanted: str | None, source: str | None) -> None:
    forks.check_state_location(wanted, source)


@pytest.mark.parametrize(
    ("wanted", "source", "kind"),
    [
        ("s3://bucket/b", None, "not_applicable"),
        (None, "s3://bucket/a", "required"),
        ("s3://bucket/a", "s3://bucket/a", "overlaps_source"),
        ("s3://bucket/a/", "s3://bucket/a", "overlaps_source"),
        ("s3://bucket/a/b", "s3://bucket/a", "overlaps_source"),
        ("s3://bucket", "s3://bucket/a", "overlaps_source"),
        ("s3://bucket/a", "S3://BUCKET//a/./", "overlaps_source"),
        ("imap://bucket/b", "s3://bucket/a", "unsupported"),
        ("bucket", "s3://bucket/a", "unsupported"),
    ],
)
def test_other_places_are_refused(wanted: str | None, source: str | None, kind: str) -> None:
    with pytest.raises(RefusedError) as caught:
        forks.check_state_location(wanted, source)
    assert caught.value.code == f"scheduler_state_location_{kind}"
