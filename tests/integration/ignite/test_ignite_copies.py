"""A real cache and a real query copied into TFRecord shards by the process with limits."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.integration.ignite.conftest import Ignite
from yardmaster.formats.tf_example import parse_example
from yardmaster.formats.tfrecord import read_records
from yardmaster.ignite.copying import Copied, CopyWanted, copied, progress
from yardmaster.ignite.looking import Wanted
from yardmaster.ignite.nodes import ignite_policy
from yardmaster.ignite.refusals import NotLooked
from yardmaster_runner.data.description import Feature, from_text

pytestmark = [pytest.mark.ignite, pytest.mark.slow]
LOCAL = ignite_policy(["127.0.0.1"], ["1-65535"])


def copy_of(server: Ignite, folder: Path, cache: str = "", query: str = "", most: int = 1 << 30) -> Copied:
    wanted = CopyWanted(Wanted([("127.0.0.1", server.ports[0])], {}), cache, query, most)
    return copied(wanted, LOCAL, folder, threading.Event())


def rows_of(found: Copied) -> list[dict]:
    made = []
    for path, file in found.files.items():
        if path.endswith(".tfrecord"):
            with file.open("rb") as stream:
                made += [parse_example(one.data) for one in read_records(stream)]
    return [{name: list(one.values) for name, one in row.items()} for row in made]


def test_a_cache_of_objects_is_copied_with_what_its_fields_are(plain: Ignite, tmp_path: Path) -> None:
    found = copy_of(plain, tmp_path, cache="one-pictures")
    rows = {row["key"][0]: row for row in rows_of(found)}
    assert (found.rows, sorted(rows)) == (100, list(range(100)))
    assert progress(tmp_path)[0] == 100
    seven = rows[7]
    assert seven["val.name"] == [b"kitten-7.png"]
    assert seven["val.metadata.sizes"] == [800, 7]
    assert seven["val.again.id"] == [70]
    assert seven["val.weights"] == [3.5, 3.5, 3.5]
    assert (seven["val.taken"], seven["val.kept"]) == ([1_000_007], [2_000_007 * 10**6 + 5])
    assert (seven["val.kind"], seven["val.votes"], "val.votes" in rows[4]) == ([1], [7], False)
    features = from_text((tmp_path / "data" / "dataset.json").read_text()).features
    assert features["key"] == Feature("int64", ())
    assert features["val.name"] == Feature("bytes", (), "utf8")
    assert features["val.metadata.sizes"] == Feature("int64", (2,))
    assert features["val.votes"] == features["val.taken"].__class__("int64", None)


def test_a_query_is_copied_and_a_null_is_a_feature_that_is_not_there(plain: Ignite, tmp_path: Path) -> None:
    found = copy_of(plain, tmp_path, query="SELECT ID, NAME, WEIGHT FROM KITTENS ORDER BY ID")
    assert rows_of(found)[:2] == [
        {"ID": [1], "NAME": [b"WARM KITTY"], "WEIGHT": [0.5]}, {"ID": [2], "NAME": [b"SOFT KITTY"]},
    ]  # fmt: skip


def test_long_rows_come_in_several_pages(plain: Ignite, tmp_path: Path) -> None:
    found = copy_of(plain, tmp_path, cache="one-blobs")
    assert sorted(len(row) for row in rows_of(found)) == [2] * 12


@pytest.mark.parametrize(
    ("wanted", "refused"),
    [
        ({"cache": "nowhere"}, ("cache", "ignite_cache")),
        ({"query": "SELECT nothing FROM KITTENS"}, ("query", "ignite_query")),
        ({"query": "SELECT * FROM KITTENS WHERE ID > 9"}, ("cache", "ignite_cache")),
        ({"query": "SELECT ID, ID FROM KITTENS"}, ("query", "ignite_query")),
        ({"query": "SELECT CAST(ID AS DECIMAL) AS D FROM KITTENS"}, ("query", "ignite_type")),
        ({"cache": "one-blobs", "most": 1 << 20}, ("dataset", "dataset_too_large")),
    ],
)
def test_a_copy_that_cannot_be_made_says_why(plain: Ignite, tmp_path: Path, wanted: dict, refused: tuple) -> None:
    with pytest.raises(NotLooked) as error:
        copy_of(plain, tmp_path, **wanted)
    problem = error.value.problem
    assert (problem.field, problem.code) == refused, problem
    assert problem.message.endswith((".", "…", "?")), problem
    assert problem.remedy
