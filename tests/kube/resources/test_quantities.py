from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_kube.resources import quantities


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("500m", "0.5"),
        (2, "2"),
        ("1.5", "1.5"),
        (".5", "0.5"),
        ("1Ki", "1024"),
        ("1k", "1000"),
        ("1.5Gi", "1610612736"),
        ("1e3", "1000"),
        ("1E", "1000000000000000000"),
        ("100n", "0.0000001"),
    ],
)
def test_a_quantity_is_a_number(text: str | int, number: str) -> None:
    assert quantities.number(text) == Decimal(number)


@pytest.mark.parametrize("text", ["", "4GiB", "-1", "1 Gi", "Gi", "1e", "1_000", "1" * 40])
def test_anything_else_is_not_a_quantity(text: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity"):
        quantities.number(text)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("1000m", "1"),
        ("0.5", "500m"),
        ("1.5Gi", "1536Mi"),
        ("1024Mi", "1Gi"),
        ("2000M", "2G"),
        ("1500M", "1500M"),
        ("1e3", "1k"),
        ("0", "0"),
        (4, "4"),
    ],
)
def test_quantities_have_the_canonical_form_of_the_api_server(
    text: str | int, canonical: str
) -> None:
    assert quantities.canonical(text) == canonical


@given(
    st.integers(0, 10**9),
    st.sampled_from(["", "m", "k", "M", "G", "Ki", "Mi", "Gi", "Ti"]),
)
def test_the_canonical_form_is_stable(number: int, unit: str) -> None:
    text = quantities.canonical(f"{number}{unit}")
    assert quantities.number(text) == quantities.number(f"{number}{unit}")
    assert quantities.canonical(text) == text


def test_cores_are_rounded_up_and_memory_down() -> None:
    assert [quantities.whole_cores(cpu) for cpu in ("1m", "1", "1001m", 4)] == [1, 1, 2, 4]
    assert [quantities.whole_mebibytes(size) for size in ("1Gi", "1M", "2097151")] == [1024, 0, 1]
