"""Which partitions a task reads, and where it looks for Ignite: what the environment and the script say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    holders = [{"a", "host-a"}, {"b"}, {"a"}, {"b"}, {"c"}]
    assert parts.beside_data(holders, ["b", "a"]) == [1, 0, 1, 0, 0]
    assert parts.beside_data([{"a"}] * 4, ["a", "a"]) == [0, 1, 0, 1]
    assert parts.beside_data(holders, ["x", "y"]) is None, "no task is beside a node"
    assert parts.beside_data([{"a"}] * 4, ["a", "b"]) is None, "one would have nothing to read"


@given(
    st.lists(st.frozensets(st.sampled_from("abcd"), max_size=2), max_size=40),
    st.lists(st.sampled_from("abcde"), min_size=1, max_size=6),
)
def test_beside_the_data_every_partition_has_one_task_and_as_many_as_can_be_are_local(
    holders: list[frozenset[str]], machines: list[str]
) -> None:
    found = parts.beside_data(holders, machines)
    if found is None:
        return
    assert len(found) == len(holders)
    assert set(found) == set(range(len(machines)))
    for part, addresses in zip(found, holders, strict=True):
        assert machines[part] in addresses or not addresses.intersection(machines)


def test_the_division_that_tasks_agreed_on_comes_before_the_plain_one(tmp_path: Path) -> None:
    said = {"part": [1, 2], "inputs": [], "machines": ["a", "b"], "socket": "x"}
    (tmp_path / "inputs.json").write_text(json.dumps(said))
    environment = {VARIABLE: str(tmp_path / "inputs.json")}
    places = []

    def agreed(place: parts.Place) -> list[int]:
        places.append(place)
        return [1, 1, 0, 1]

    assert parts.chosen(4, None, None, environment, agreed=agreed) == [0, 1, 3]
    assert places == [parts.Place((1, 2), ("a", "b"), "x")]
    assert parts.chosen(4, None, (0, 2), environment, agreed=agreed) == [0, 2]
    assert parts.chosen(4, [2], None, environment, agreed=agreed) == [2]
    assert len(places) == 1


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
