"""The arithmetic of ranges and parts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.uploads.delivery import ByteRange, RangeRefused, parse_range
from apps.uploads.manifest import MAX_FILE_SIZE, PART_SIZE, part_count, part_length, part_size_for
from yardmaster.storage.assembly import CRC_BUDGET, crc_budgets
from yardmaster.storage.base import MAX_PART_SIZE, MAX_PARTS


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("bytes=0-0", ByteRange(0, 1)),
        ("bytes=2-4", ByteRange(2, 3)),
        ("bytes=5-", ByteRange(5, 5)),
        ("bytes=-3", ByteRange(7, 3)),
        ("bytes=-99", ByteRange(0, 10)),
        ("bytes=8-99", ByteRange(8, 2)),
        ("", None),
        ("bytes=", None),
        ("bytes=-", None),
        ("bytes=4-2", None),
        ("bytes=0-1,3-4", None),
        ("bytes=" + ",".join(["0-"] * 10_000), None),
        ("lines=0-1", None),
        ("bytes=a-b", None),
        ("bytes=٣-٤", None),
        ("bytes=" + "9" * 5000 + "-", None),
    ],
)
def test_one_range_is_honoured_and_anything_else_is_the_whole(header, expected):
    assert parse_range(header, 10) == expected


@pytest.mark.parametrize(
    ("header", "size"), [("bytes=10-", 10), ("bytes=99-100", 10), ("bytes=-0", 9), ("bytes=0-", 0)]
)
def test_a_range_outside_the_object_is_refused(header, size):
    with pytest.raises(RangeRefused):
        parse_range(header, size)


@given(st.integers(0, MAX_FILE_SIZE))
def test_parts_make_up_the_file_and_are_as_many_as_s3_takes(size):
    part_size = part_size_for(size)
    count = part_count(size, part_size)
    assert PART_SIZE <= part_size <= MAX_PART_SIZE
    assert count <= MAX_PARTS
    if count:
        assert (count - 1) * part_size + part_length(size, part_size, count) == size
        assert part_length(size, part_size, 1) == min(size, part_size)
        assert part_length(size, part_size, count) > 0
    else:
        assert size == 0


def test_no_request_of_an_upload_is_too_large_for_a_proxy_on_the_way():
    """Pains J: uploads of 800 MB time out, and proxies refuse large bodies. Here each request carries 8 MiB at most."""
    assert part_size_for(800 << 20) == part_size_for(80_000 << 20) == 8 << 20


def test_checksums_are_verified_until_the_budget_is_spent():
    assert list(crc_budgets([5, CRC_BUDGET, 7])) == [CRC_BUDGET, CRC_BUDGET - 5, 0]
