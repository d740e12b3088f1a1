"""What a file looks like, and whether it still is what it was."""

from __future__ import annotations

import gzip
import json
import struct

import pytest

from apps.datasets import integrity
from apps.datasets.record_preview import preview_records
from apps.uploads.models import Upload
from tests.integration.datasets.test_datasets import make
from tests.integration.sending import tfrecord
from tests.unit.storage.test_tfrecord import example

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 50


@pytest.fixture
def client(ada, signed_in):
    return signed_in(ada)


def preview(client, path: str, data: bytes):
    version = make(client, f"of {path}", {path: data})["latest"]["id"]
    answer = client.get(f"/api/v1/dataset-versions/{version}/preview/", {"path": path})
    assert answer.status_code == 200
    return answer.json()


def test_a_table_shows_its_first_rows_under_its_heading(client):
    rows = b"".join(b"%d,name %d\n" % (number, number) for number in range(500))
    found = preview(client, "a.csv", b"id,name\n" + rows)
    assert (found["kind"], found["records"], found["truncated"]) == ("table", 500, False)
    assert found["table"]["columns"] == ["id", "name"]
    assert found["table"]["rows"][0] == ["0", "name 0"]
    assert len(found["table"]["rows"]) == 50


def test_a_table_without_a_heading_has_numbered_columns(client):
    found = preview(client, "a.tsv", b"1\t2\n3\t4\n")
    assert found["table"] == {"columns": ["1", "2"], "rows": [["1", "2"], ["3", "4"]]}


def test_a_table_of_one_endless_row_is_bounded(client):
    found = preview(client, "a.csv", b"x" * 200_000 + b",1\n")
    assert found["kind"] == "table"
    assert sum(len(cell) for row in found["table"]["rows"] for cell in row) < 1000


def test_a_text_shows_its_beginning_and_never_half_a_character(client):
    found = preview(client, "a.txt", "ü".encode() * 100_000)
    assert (found["kind"], found["truncated"]) == ("text", True)
    assert set(found["text"]) == {"ü"}


@pytest.mark.parametrize("data", [b"\0\1\2", b"\xff\xfe\xfd" * 100, b"abc\0"])
def test_what_is_no_text_is_not_shown_as_one(client, data):
    found = preview(client, "a.txt", data)
    assert (found["kind"], found["text"]) == ("binary", "")


def test_a_picture_is_shown_from_a_short_lived_address(client):
    from django.test import Client

    found = preview(client, "a.png", PNG)
    assert found["kind"] == "image"
    answer = Client().get(found["url"].partition(":8080")[2])
    assert answer.headers["Content-Type"] == "image/png"
    assert b"".join(answer.streaming_content) == PNG


def test_a_drawing_that_could_run_scripts_is_text(client):
    found = preview(client, "a.svg", b"<svg onload='alert(1)'/>")
    assert (found["kind"], found["url"]) == ("text", "")


def test_records_show_features_samples_and_classes(client):
    records = [example(image=[PNG], label=[number % 3], weights=[0.5, 1.5]) for number in range(30)]
    found = preview(client, "train.tfrecord", tfrecord(*records))
    assert (found["kind"], found["records"], found["damage"]) == ("tfrecord", 30, None)
    assert found["features"] == [
        {"name": "image", "dtype": "bytes", "shape": [1]},
        {"name": "label", "dtype": "int64", "shape": [1]},
        {"name": "weights", "dtype": "float", "shape": [2]},
    ]
    assert found["labels"] == {
        "feature": "label",
        "counts": {"0": 10, "1": 10, "2": 10},
        "records": 30,
        "complete": True,
    }
    assert len(found["samples"]) == 5
    first = {feature["name"]: feature for feature in found["samples"][0]["features"]}
    assert first["weights"]["values"] == [0.5, 1.5]
    assert first["label"]["values"] == [0]
    assert first["image"]["image"].startswith("data:image/png;base64,")


def test_features_of_changing_length_and_odd_numbers_are_shown(client):
    records = [example(x=[1] * (number + 1), f=[float("nan"), float("inf")]) for number in range(3)]
    found = preview(client, "x.tfrecord", tfrecord(*records))
    assert {one["name"]: one["shape"] for one in found["features"]} == {"x": [-1], "f": [2]}
    [values] = [one["values"] for one in found["samples"][0]["features"] if one["name"] == "f"]
    assert values == ["nan", "inf"]


def test_a_corrupt_dataset_says_where(client):
    """Line J of pains: a corrupt file is found before a job fails on it."""
    data = bytearray(tfrecord(example(a=[1]), example(a=[2]), example(a=[3])))
    size = len(data) // 3
    data[size] ^= 0xFF
    found = preview(client, "x.tfrecord", bytes(data))
    assert found["damage"] == {"record": 1, "offset": size, "message": "the checksum of its length is wrong"}
    assert len(found["samples"]) == 1


def test_a_record_that_is_too_long_is_said_to_be_and_is_no_damage(client):
    found = preview(client, "x.tfrecord", tfrecord(example(a=[1]), b"x" * ((8 << 20) + 1)))
    assert [one["index"] for one in found["samples"]] == [0, 1]
    assert "more than 8 MiB are not shown" in found["samples"][1]["note"]
    assert (found["damage"], found["truncated"]) == (None, True)


def test_names_and_pictures_of_a_record_are_shown_within_bounds(client):
    picture = b"\x89PNG\r\n\x1a\n" + b"x" * (40 << 10)
    features = {f"{number:04}{'n' * 1000}": [picture] for number in range(150)}
    found = preview(client, "x.tfrecord", tfrecord(example(**features)))
    shown = found["samples"][0]["features"]
    assert len(shown) == len(found["features"]) == 16
    assert [bool(one["image"]) for one in shown] == [True] * 4 + [False] * 12


def test_records_that_are_no_examples_are_shown_as_such(client):
    found = preview(client, "x.tfrecord", tfrecord(b"hello", b"\xff\xff"))
    assert [bool(sample["note"]) for sample in found["samples"]] == [True, True]
    assert found["labels"] is None


def test_counting_labels_stops_when_patience_ends():
    import io

    ticks = iter(range(1000))
    source = io.BytesIO(tfrecord(*[example(label=[1])] * 100))
    found = preview_records(source, 5, clock=lambda: float(next(ticks)), patience=20)
    assert found.labels is not None
    assert not found.labels.complete
    assert 5 < found.labels.records < 30


def test_a_feature_with_a_value_of_its_own_in_each_record_is_no_label():
    import io

    source = io.BytesIO(tfrecord(*[example(label=[number]) for number in range(1500)]))
    assert preview_records(source, 5).labels is None


def test_a_record_of_an_impossible_length_is_damage_and_costs_no_memory(client):
    from yardmaster.formats.tfrecord import masked_crc

    length = struct.pack("<Q", 1 << 40)
    data = length + struct.pack("<I", masked_crc(length)) + b"x" * 100
    found = preview(client, "x.tfrecord", data)
    assert found["damage"]["record"] == 0


# --- Check


def check(client, version: str, **query):
    answer = client.get(f"/api/v1/dataset-versions/{version}/check/", query)
    assert answer.status_code == 200
    return answer.json()


def test_a_sound_version_is_found_sound(client):
    version = make(client)["latest"]
    sound = {"checked": 3, "bytes": version["size"], "corrupt": [], "unread": [], "next": None}
    assert check(client, version["id"]) == sound


def test_a_corrupt_or_lost_file_is_named(client, store):
    version = make(client, content={"a": b"good", "b": b"good", "c": b"good"})["latest"]["id"]
    place = Upload.objects.get().key_prefix
    store.put(f"{place}/b", b"evil")
    store.delete(f"{place}/c")
    corrupt = check(client, version)["corrupt"]
    assert [(one["path"], bool(one["found"])) for one in corrupt] == [("b", True), ("c", False)]


def test_a_large_version_is_checked_in_several_requests(client, monkeypatch):
    version = make(client, content=dict.fromkeys("abcd", b"x"))["latest"]["id"]
    monkeypatch.setattr(integrity, "PATIENCE", -1.0)
    checked, after = 0, ""
    for _ in range(4):
        found = check(client, version, after=after)
        checked, after = checked + found["checked"], found["next"]
    assert (checked, after) == (4, None)


def test_an_array_shows_type_shape_values_and_pictures(client):
    header = repr({"descr": "|u1", "fortran_order": False, "shape": (3, 8, 8)}).encode() + b"\n"
    data = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(range(192))
    found = preview(client, "x.npy", data)
    assert (found["kind"], found["array"]["dtype"], found["array"]["shape"]) == ("array", "uint8", [3, 8, 8])
    assert len(found["array"]["pictures"]) == 3
    assert found["table"]["rows"][1][:2] == ["64", "65"]
    cut = preview(client, "cut.npy", data[:-1])
    assert cut["array"]["problem"] == "The file has 191 bytes of items; its header says 192."


def prepared(features: dict, shard: bytes, path: str) -> dict[str, bytes]:
    about = {
        "format": "yardmaster-dataset", "version": 1, "compression": "GZIP", "label": "label", "features": features,
        "splits": {"train": [{"path": path, "records": 30, "size": len(shard)}]},
    }  # fmt: skip
    return {"dataset.json": json.dumps(about).encode(), path: shard}


ARRAY = {"pixels": {"kind": "bytes", "encoding": "raw:uint8", "shape": [8, 8]}, "label": {"kind": "int64"}}


def array_records() -> bytes:
    return tfrecord(*(example(pixels=[bytes(range(64))], label=[number % 3]) for number in range(30)))


@pytest.mark.parametrize(("path", "pack"), [("train/a.tfrecord.gz", gzip.compress), ("train/a.tfrecord", bytes)])
def test_the_shards_of_a_prepared_version_show_records_and_arrays_as_numbers(client, path, pack):
    version = make(client, "prepared", prepared(ARRAY, pack(array_records()), path))["latest"]["id"]
    found = client.get(f"/api/v1/dataset-versions/{version}/preview/", {"path": path}).json()
    assert (found["kind"], found["records"], found["damage"]) == ("tfrecord", 30, None)
    assert found["labels"]["counts"] == {"0": 10, "1": 10, "2": 10}
    assert found["features"][1] == {"name": "pixels", "dtype": "uint8", "shape": [8, 8]}
    [pixels] = [one for one in found["samples"][0]["features"] if one["name"] == "pixels"]
    assert (pixels["dtype"], pixels["shape"], pixels["values"]) == ("uint8", [8, 8], list(range(10)))
    assert pixels["image"].startswith("data:image/png;base64,")


def test_arrays_of_floats_are_numbers_and_bytes_that_do_not_fit_stay_bytes(client):
    shape = {"kind": "bytes", "encoding": "raw:float32", "shape": [3]}
    shard = tfrecord(example(a=[struct.pack("<3f", 1, 0.5, float("nan"))], b=[b"\x00\x01"]))
    version = make(client, "floats", prepared({"a": shape, "b": shape}, shard, "a.tfrecord"))["latest"]["id"]
    found = client.get(f"/api/v1/dataset-versions/{version}/preview/", {"path": "a.tfrecord"}).json()
    a, b = found["samples"][0]["features"]
    assert (a["values"], b["dtype"], b["values"]) == ([1.0, 0.5, "nan"], "bytes", ["2 bytes: 00 01"])


def test_gzip_of_several_members_is_read_to_its_end(client):
    members = [gzip.compress(tfrecord(example(label=[1]))), gzip.compress(tfrecord(example(label=[2])))]
    found = preview(client, "x.tfrecord.gz", b"".join(members))
    assert (found["labels"]["counts"], found["labels"]["complete"]) == ({"1": 1, "2": 1}, True)


@pytest.mark.parametrize(
    ("cut", "words"),
    [(lambda data: data[:-40], "too early"), (lambda data: data[:10] + b"\x07" + data[11:], "gzip data is damaged")],
)
def test_damaged_gzip_says_so(client, cut, words):
    data = gzip.compress(tfrecord(*(example(label=[number], x=[bytes([number]) * 9]) for number in range(99))))
    assert words in preview(client, "x.tfrecord.gz", cut(data))["damage"]["message"]


def test_what_unpacks_to_very_much_is_read_no_further_than_is_shown(client, monkeypatch):
    from apps.datasets import unpacked

    read = []
    real = unpacked.Unpacked.readinto
    monkeypatch.setattr(unpacked.Unpacked, "readinto", lambda self, to: read.append(real(self, to)) or read[-1])
    bomb = gzip.compress(tfrecord(example(a=[1])) + struct.pack("<Q", 1 << 40) + bytes(64 << 20))
    assert len(bomb) < 1 << 20
    assert preview(client, "x.tfrecord.gz", bomb)["samples"]
    assert sum(read) <= 2 << 20


def test_endless_empty_members_are_given_up(client):
    data = gzip.compress(tfrecord(example(a=[1]))) + gzip.compress(b"") * 50_000
    assert "gzip" in preview(client, "x.tfrecord.gz", data)["damage"]["message"]
