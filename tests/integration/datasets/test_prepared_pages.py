"""The pages of preparation: the form that launches a job, and what is shown of a version with `dataset.json`."""

from __future__ import annotations

import gzip
import json
import uuid

import pytest

from apps.datasets import pages
from apps.datasets.models import DatasetVersion
from apps.jobs.models import Job
from tests.integration.sending import store, tfrecord, uploaded
from tests.unit.storage.test_tfrecord import example

__all__ = ["store"]


@pytest.fixture(autouse=True)
def _pages_look_to_the_end(monkeypatch):
    """However long this machine stands still meanwhile."""
    monkeypatch.setattr(pages, "_PREVIEW_PATIENCE", 60.0)


def version_of(api, content, name="prepared") -> str:
    """The id of a new dataset."""
    made = api.post("/api/v1/datasets/", {"name": name, "upload": uploaded(api, content)})
    assert made.status_code == 201, made.json()
    return made.json()["id"]


@pytest.fixture
def engine_that_runs_nothing(settings):
    settings.YARDMASTER_ENGINES = {"staged": {"class": "tests.integration.jobs.world.StagedEngine", "options": {}}}
    settings.YARDMASTER_DEFAULT_ENGINE = "staged"


def described(**changes) -> bytes:
    return json.dumps(
        {
            "format": "yardmaster-dataset", "version": 1, "compression": "GZIP", "label": "label",
            "features": {"text": {"kind": "bytes", "encoding": "utf8"}, "label": {"kind": "int64"}},
            "classes": ["cat", "dog"], "counts": {"train": {"cat": 900, "dog": 7}, "test": {"cat": 93}},
            "splits": {"train": [{"path": "train/a.tfrecord", "records": 907, "size": 9}]},
            "statistics": {"length": {"min": 1, "max": 9, "mean": 4.5, "std": 2}},
            "histograms": {"length": {"start": 0, "width": 1, "counts": [1, 5, 3]}}, **changes,
        }
    ).encode()  # fmt: skip


@pytest.fixture
def me(client, ada):
    client.force_login(ada)
    return client


def page_of(me, ada, signed_in, text: bytes) -> str:
    item = version_of(signed_in(ada), {"dataset.json": text, "train/a.txt": b"x"})
    answer = me.get(f"/datasets/{item}/")
    assert answer.status_code == 200
    return answer.content.decode()


def test_a_prepared_version_shows_splits_features_classes_and_numbers_of_all_files(me, ada, signed_in):
    shown = page_of(me, ada, signed_in, described())
    for words in ("Prepared data", "907", "utf8", "993", "99.3 %", "of all 1,000 records", "length", "GZIP"):
        assert words in shown, words
    assert shown.count("<rect x=") == 3


@pytest.mark.parametrize(
    "text",
    [b"{", described(splits=3), described(histograms={"a": 1}), described(counts={"train": {"cat": "x"}}),
     described(statistics={"a": {"min": "NaN", "max": "x"}}), b'{"a":' * 100_000, described(label="<script>")],
    ids=["cut", "splits", "histogram", "counts", "statistics", "deep", "script"],
)  # fmt: skip
def test_a_description_may_be_anything(me, ada, signed_in, text):
    shown = page_of(me, ada, signed_in, text)
    assert "Prepared data" in shown
    assert "<script>label" not in shown
    assert "<code><script>" not in shown


def test_the_page_of_a_prepared_version_shows_the_first_records_of_a_packed_shard(me, ada, signed_in):
    about = described(
        features={"pixels": {"kind": "bytes", "encoding": "raw:uint8", "shape": [5, 5]}, "label": {"kind": "int64"}},
        splits={"train": [{"path": "train/a.tfrecord.gz", "records": 2, "size": 9}]},
    )
    shard = gzip.compress(tfrecord(*(example(pixels=[bytes(range(7, 32))], label=[number]) for number in range(2))))
    item = version_of(signed_in(ada), {"dataset.json": about, "train/a.tfrecord.gz": shard})
    DatasetVersion.objects.update(source_job=uuid.uuid4())
    shown = me.get(f"/datasets/{item}/").content.decode()
    for words in ("2 records", "Record 1", "<code>uint8</code>", "(5, 5)", "data:image/png;base64,"):
        assert words in shown, words


@pytest.mark.parametrize("text", [b"[]", b'{"classes": 10}'], ids=["list", "other members"])
def test_a_file_of_that_name_from_elsewhere_is_a_file_like_others(me, ada, signed_in, text):
    assert "Prepared data" not in page_of(me, ada, signed_in, text)


def test_the_page_of_an_array_shows_type_pictures_and_values_and_what_is_wrong(me, ada, signed_in):
    header = repr({"descr": "|u1", "fortran_order": False, "shape": (2, 8, 8)}).encode() + b"\n"
    array = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(range(128))
    item = version_of(signed_in(ada), {"x.npy": array, "z.npy": array[:-3]}, name="arrays")
    shown = me.get(f"/datasets/{item}/?path=x.npy").content.decode()
    for words in ("NumPy array", "<code>uint8</code>", "(2, 8, 8)", "The first 2 as pictures", "<td>64</td>"):
        assert words in shown, words
    assert shown.count("data:image/png;base64,") == 2
    assert "125 bytes of items" in me.get(f"/datasets/{item}/?path=z.npy").content.decode()


def test_the_form_launches_an_ordinary_job_of_the_namespace(me, ada, signed_in, engine_that_runs_nothing):
    api = signed_in(ada)
    item = version_of(api, {"a.csv": b"a,b\n1,2\n"}, name="table")
    version = api.get(f"/api/v1/datasets/{item}/").json()["latest"]["id"]
    address = f"/datasets/versions/{version}/prepare/"
    assert "table-prepared" in me.get(address).content.decode()
    form = {
        "to": "ready", "format": "csv", "label": "b", "split": "90/20", "seed": 1, "shard_megabytes": 150,
        "compression": "gzip", "on_bad_record": "fail", "workers": 2, "cpu": "1", "memory": "1Gi",
    }  # fmt: skip
    refused = me.post(address, form)
    assert refused.status_code == 400
    assert "percentages that add up to 100" in refused.content.decode()
    done = me.post(address, form | {"split": "90/10"})
    job = Job.objects.get()
    assert (done.status_code, done["Location"]) == (302, f"/jobs/{job.pk}/")
    assert (job.name, job.strategy, job.replicas, job.spec["program"]) == (
        "prepare table", "batch", {"worker": 2}, "prepare",
    )  # fmt: skip
    assert job.spec["publishes"]["dataset"] == "ready"
    assert job.spec["options"]["compression"] == "gzip"
    shown = me.get(f"/jobs/{job.pk}/").content.decode()
    assert "becomes a new version of" in shown
    assert f'href="{address}?from={job.pk}" id="job-clone"' in shown
    assert "<dt>Publishes</dt><dd><bdi>ready</bdi>" in shown
    assert "program: prepare" in shown
    assert "entry_point" not in shown


def test_a_preparation_is_cloned_with_all_that_it_said_and_shards_have_presets(
    me, ada, bob, signed_in, engine_that_runs_nothing
):
    api = signed_in(ada)
    item = version_of(api, {"a.csv": b"a,b\n1,2\n"}, name="table")
    address = f"/datasets/versions/{api.get(f'/api/v1/datasets/{item}/').json()['latest']['id']}/prepare/"
    form = {
        "to": "ready", "format": "csv", "label": "b", "split": "80/20", "seed": 7, "shards": "size",
        "compression": "gzip", "on_bad_record": "skip", "workers": 3, "cpu": "0.5", "memory": "1Gi", "note": "why",
    }  # fmt: skip
    assert "Enter a number, or choose a size above." in me.post(address, form).content.decode()
    sizes = []
    for more in ({"shard_megabytes": 7}, {"shards": "200"}, {"shards": "records", "records_per_shard": 5_000}):
        job = Job.objects.get(pk=me.post(address, form | more)["Location"].split("/")[2])
        shown = me.get(f"{address}?from={job.pk}").context["form"]
        again = {field.name: field.value() for field in shown}
        made = me.post(address, {name: value for name, value in again.items() if value is not None})
        other = Job.objects.get(pk=made["Location"].split("/")[2])
        for name in ("options", "publishes", "roles"):
            assert other.spec[name] == job.spec[name]
        sizes.append((job.spec["options"].get("shard_bytes"), job.spec["options"].get("records_per_shard")))
    assert sizes == [(7_000_000, None), (200_000_000, None), (None, 5_000)]
    theirs = version_of(signed_in(bob), {"a.csv": b"a\n1\n"}, name="table")
    theirs = signed_in(bob).get(f"/api/v1/datasets/{theirs}/").json()["latest"]["id"]
    me.force_login(bob)
    assert me.get(f"/datasets/versions/{theirs}/prepare/?from={job.pk}").status_code == 404


def test_the_form_offers_the_engines_that_one_may_use_and_a_clone_keeps_its_own(
    me, ada, signed_in, settings, engine_that_runs_nothing, tmp_path
):
    other = settings.YARDMASTER_ENGINES["staged"]
    local = {"class": "yardmaster.engines.local.engine.LocalEngine", "options": {"root": str(tmp_path)}}
    broken = {"class": "yardmaster.engines.local.engine.LocalEngine", "options": {}}
    settings.YARDMASTER_ENGINES = {"staged": other, "other": other, "local": local, "broken": broken}
    api = signed_in(ada)
    item = version_of(api, {"a.csv": b"a,b\n1,2\n"}, name="table")
    address = f"/datasets/versions/{api.get(f'/api/v1/datasets/{item}/').json()['latest']['id']}/prepare/"
    assert [name for name, _ in me.get(address).context["form"].fields["engine"].choices] == ["", "other", "staged"]
    form = {
        "to": "ready", "format": "csv", "label": "b", "split": "80/20", "seed": 7, "shards": "150", "workers": 1,
        "compression": "none", "on_bad_record": "skip", "cpu": "1", "memory": "1Gi",
    }  # fmt: skip
    assert me.post(address, form | {"engine": "local"}).status_code == 400
    engines = [me.post(address, form | {"engine": name})["Location"].split("/")[2] for name in ("other", "")]
    assert [Job.objects.get(pk=pk).engine for pk in engines] == ["other", "staged"]
    assert me.get(f"{address}?from={engines[0]}").context["form"]["engine"].value() == "other"


def test_the_api_makes_the_same_job_and_strangers_find_nothing(ada, bob, signed_in, engine_that_runs_nothing):
    api = signed_in(ada)
    item = version_of(api, {"a.csv": b"a,b\n1,2\n"}, name="table")
    version = api.get(f"/api/v1/datasets/{item}/").json()["latest"]["id"]
    address = f"/api/v1/dataset-versions/{version}/prepare/"
    made = api.post(address, {"to": "ready", "workers": 3, "options": {"split": "80/10/10"}})
    assert made.status_code == 201, made.json()
    assert made.json()["spec"]["roles"]["worker"]["replicas"] == 3
    wrong = api.post(address, {"to": "ready", "options": {"splits": "80/10/10"}})
    assert (wrong.status_code, wrong.json()["errors"][0]["field"]) == (422, "options.splits")
    assert signed_in(bob).post(address, {"to": "mine"}).status_code == 404
