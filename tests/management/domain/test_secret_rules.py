import pytest

from caraway_management.domain import secret_rules
from caraway_management.domain.refusals import RefusedError


@pytest.mark.parametrize("value", ["x", "ä" * 16_384, "line\nbreak"])
def test_values_are_returned_as_they_are(value: str) -> None:
    assert secret_rules.check_value(value) == value


@pytest.mark.parametrize("value", ["", "hunter2" * 5_000, "hunter2\0", "hunter2\ud800"])
def test_refusals_have_no_part_of_the_value(value: str) -> None:
    with pytest.raises(RefusedError) as refused:
        secret_rules.check_value(value)
    assert list(refused.value.fields) == ["value"]
    assert "hunter2" not in refused.value.message


@pytest.mark.parametrize(
    ("number", "sealed"),
    [(secret_rules.MOST_SECRETS + 1, 0), (1, secret_rules.MOST_SEALED_BYTES + 1)],
)
def test_number_and_size_are_limited(number: int, sealed: int) -> None:
    secret_rules.check_room(secret_rules.MOST_SECRETS, secret_rules.MOST_SEALED_BYTES)
    with pytest.raises(RefusedError, match="at most") as refused:
        secret_rules.check_room(number, sealed)
    assert refused.value.code == "too_many_secrets"
