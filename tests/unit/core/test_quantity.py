"""Amounts as people write and read them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yardmaster.quantity import NotAQuantity, format_amount, format_bytes, format_cpu, parse_cpu, parse_memory


@pytest.mark.parametrize(
    ("written", "cores"),
    [(2, 2.0), (0.5, 0.5), ("2", 2.0), ("500m", 0.5), ("1.5", 1.5), (" 250m ", 0.25), ("1m", 0.001), (0.00049, 0.0)],
)
def test_cores_are_read_to_the_thousandth(written: object, cores: float) -> None:
    assert parse_cpu(written) == cores


@pytest.mark.parametrize(
    ("written", "amount"),
    [
        (1073741824, 1 << 30),
        ("2Gi", 2 << 30),
        ("2GiB", 2 << 30),
        ("500M", 500_000_000),
        ("500 MB", 500_000_000),
        ("1.5Gi", 3 << 29),
        ("0.1Gi", 107374182),
        ("64k", 64000),
        ("1Ti", 1 << 40),
        (2.9, 2),
    ],
)
def test_memory_is_read_in_bytes(written: object, amount: int) -> None:
    assert parse_memory(written) == amount


_NONSENSE = [
    "", "lots", "-1", "1e3", "0x10", "٣", "1Gi2", "1 Gi B", "1" * 40, True, None, [], {},
    float("nan"), float("inf"), 10**30,
]  # fmt: skip


@pytest.mark.parametrize("written", [*_NONSENSE, "2Gi", "5x"])
def test_what_is_no_number_of_cores_is_refused_with_an_example(written: object) -> None:
    with pytest.raises(NotAQuantity, match="500m"):
        parse_cpu(written)


@pytest.mark.parametrize("written", [*_NONSENSE, "500m", "2gi", "2XB"])
def test_what_is_no_amount_of_memory_is_refused_with_an_example(written: object) -> None:
    with pytest.raises(NotAQuantity, match="2Gi"):
        parse_memory(written)


@pytest.mark.parametrize(
    ("amount", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1 KiB"), (3 << 29, "1.5 GiB"), (5 << 40, "5 TiB"), (9 << 50, "9216 TiB")],
)
def test_bytes_are_written_in_the_largest_unit_that_fits(amount: int, text: str) -> None:
    assert format_bytes(amount) == text


def test_amounts_are_written_by_their_resource() -> None:
    assert format_amount("memory", 1 << 30) == "1 GiB"
    assert format_amount("gpus", 2) == "2"
    assert format_cpu(0.5) == "0.5"
    assert format_cpu(4.0) == "4"


@given(st.integers(0, 10**9))
def test_thousandths_of_a_core_survive_writing_and_reading(thousandths: int) -> None:
    cores = thousandths / 1000
    assert parse_cpu(f"{thousandths}m") == cores
    assert parse_cpu(format_cpu(cores)) == cores


@given(st.text(max_size=12) | st.floats() | st.integers() | st.booleans())
def test_anything_is_read_or_refused(written: object) -> None:
    for parse in (parse_cpu, parse_memory):
        try:
            found = parse(written)
        except NotAQuantity:
            continue
        assert found == found  # never NaN
