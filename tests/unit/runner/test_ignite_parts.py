"""Which partitions a task reads, and where it looks for Ignite: what the environment and the script say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from yardmaster_runner.data.ignite_reader import parts, wire
from yardmaster_runner.data.ignite_reader.access import addresses_of, tls_context
from yardmaster_runner.data.ignite_reader.errors import IgniteCertificateError, IgniteDataError, IgnitePartitionError
from yardmaster_runner.data.inputs import VARIABLE


@pytest.mark.parametrize(
    ("text", "found"),
    [("3", [3]), ("0,1,5-9", [0, 1, 5, 6, 7, 8, 9]), (" 4 , 2-3,4", [4, 2, 3]), ("", []), ("-1", []), ("7-7", [7])],
)
def test_partitions_are_listed_by_numbers_and_ranges(text: str, found: list[int]) -> None:
    assert parts.listed(text) == found


@pytest.mark.parametrize("text", ["a", "3-1", "1,,x", "1-2-3", "0-99999999", "-2"])
def test_a_list_that_is_none_is_named(text: str) -> None:
    with pytest.raises(IgnitePartitionError, match="IGNITE_DATASET_PART is "):
        parts.listed(text)


def _config(role: str, index: int, **counts: int) -> dict[str, str]:
    cluster = {name: ["host:1"] * count for name, count in counts.items()}
    return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": role, "index": index}})}


def test_partitions_are_divided_among_the_tasks_that_train_and_none_is_read_twice() -> None:
    tasks = [_config("chief", 0, chief=1, worker=2, ps=2)] + [_config("worker", at, chief=1, worker=2) for at in (0, 1)]
    read = [parts.chosen(8, None, None, one) for one in tasks]
    assert read == [[0, 3, 6], [1, 4, 7], [2, 5]]
    assert parts.chosen(8, None, None, _config("ps", 0, chief=1, worker=2, ps=1)) == list(range(8))
    assert parts.chosen(8, None, "all", tasks[1]) == list(range(8))
    assert parts.chosen(8, None, (1, 4), tasks[1]) == [1, 5]
    assert parts.chosen(3, None, None, {"TF_CONFIG": "no JSON"}) == [0, 1, 2]


def test_in_a_job_the_part_is_the_one_that_the_job_says(tmp_path: Path) -> None:
    (tmp_path / "inputs.json").write_text(json.dumps({"part": [1, 2], "inputs": []}))
    assert parts.chosen(5, None, None, {VARIABLE: str(tmp_path / "inputs.json")}) == [1, 3]
    (tmp_path / "inputs.json").write_text(json.dumps({"part": None, "inputs": []}))
    assert parts.chosen(2, None, None, {VARIABLE: str(tmp_path / "inputs.json")}) == [0, 1]


def test_what_the_environment_lists_comes_before_what_the_script_lists() -> None:
    assert parts.chosen(9, [1], None, {"IGNITE_DATASET_PART": "2,3"}) == [2, 3]
    assert parts.chosen(9, [1], None, {}) == [1]
    assert parts.chosen(9, None, None, {}, held=[4, 5]) == [4, 5]
    assert parts.chosen(9, None, None, {"IGNITE_DATASET_PART": "4,8"}, held=[4, 5]) == [4]


def test_a_partition_that_the_cache_does_not_have_and_a_task_without_any_are_errors() -> None:
    with pytest.raises(IgnitePartitionError, match="names the partition 9, and the cache has 8"):
        parts.chosen(8, None, None, {"IGNITE_DATASET_PART": "0,9"})
    with pytest.raises(IgnitePartitionError, match="2 partitions for 3 tasks, so task 2 has none"):
        parts.chosen(2, None, (2, 3), {})
    with pytest.raises(IgnitePartitionError, match="share is"):
        parts.chosen(2, None, (3, 3), {})


def test_where_tasks_run_beside_the_data_each_reads_what_its_machine_holds() -> None:
    owners = {0: "a:1", 1: "b:1", 2: "a:1", 3: "b:1", 4: "c:1"}
    given = parts.beside_data(["a:1", "b:1", "c:1"], owners, ["b", "a"], 5)
    assert [one["IGNITE_DATASET_HOST"] for one in given] == ["b", "a"]
    assert [one["IGNITE_DATASET_PART"] for one in given] == ["1,3,4", "0,2"]


def test_servers_are_given_by_name_with_a_port_or_without() -> None:
    assert addresses_of("one, two:11211,::1", 10800) == (("one", 10800), ("two", 11211), ("::1", 10800))
    for wrong in ("", "a:b", "a:0"):
        with pytest.raises(IgniteDataError):
            addresses_of(wrong, 10800)


def test_certificates_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    assert tls_context(None) is None
    with pytest.raises(IgniteCertificateError, match="without certfile"):
        tls_context(None, cert_password="x")
    with pytest.raises(IgniteCertificateError, match="There is no file"):
        tls_context(str(tmp_path / "none.pem"))
    (tmp_path / "bad.pem").write_text("hello")
    with pytest.raises(IgniteCertificateError, match="no certificate in PEM format"):
        tls_context(str(tmp_path / "bad.pem"))


def test_names_have_the_numbers_that_java_gives_them() -> None:
    assert wire.java_hash("") == 0
    assert wire.java_hash("KITTEN_CACHE") == wire.java_hash("KITTEN_CACHE")
    assert wire.java_hash("w") == 119
    assert wire.java_hash("one-numbers") == -787523101
    assert wire.java_hash("😀") == 31 * 0xD83D + 0xDE00
