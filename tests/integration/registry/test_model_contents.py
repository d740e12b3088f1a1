"""What a version's files say of themselves, read in a sandbox; and what becomes of hostile ones."""

from __future__ import annotations

import io
import json
import zipfile

import pytest

from apps.registry import contents
from apps.registry.contents import contents_read
from apps.stores import storage
from apps.uploads.versioned.selectors import file_key
from tests.integration.model_versions import job_of, version_of
from tests.unit.core.test_saved_model import saved_model

pytestmark = pytest.mark.django_db


def read(version) -> dict:
    contents_read(version.pk)
    version.refresh_from_db()
    return version.contents


def keras(config: dict) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("metadata.json", json.dumps({"keras_version": "3.15.1"}))
        archive.writestr("config.json", json.dumps(config))
        archive.writestr("model.weights.h5", b"0" * 10_000)
    return out.getvalue()


def test_a_saved_model_has_its_signatures_and_versions(ada, api):
    version = version_of(job_of(ada), content={"1/saved_model.pb": saved_model(), "1/variables/x": b"1"})
    found = read(version)
    assert (found["format"], found["framework"], found["framework_version"]) == ("saved_model", "TensorFlow", "2.21.0")
    assert found["path"] == "1/saved_model.pb"
    shown = api.get(f"/api/v1/model-versions/{version.pk}/").json()["contents"]
    assert shown["signatures"][0]["inputs"] == [{"name": "pixels", "dtype": "float32", "shape": [None, 64]}]


def test_names_that_no_database_takes_are_written_without_what_it_refuses(ada):
    """Otherwise the version would be read again every minute, for ever, in the place of others."""
    config = {"config": {"layers": [{"class_name": "InputLayer", "config": {"name": "a\0b\ud800", "dtype": "\0"}}]}}
    found = read(version_of(job_of(ada), content={"m.keras": keras(config)}))
    tensor = found["signatures"][0]["inputs"][0]
    assert (tensor["name"], tensor["dtype"]) == ("a\ufffdb?", "\ufffd")
    saved = saved_model().replace(b"pixels", b"pix\0ls")
    found = read(version_of(job_of(ada), content={"saved_model.pb": saved}))
    assert found["signatures"][0]["inputs"][0]["name"] == "pix\ufffdls"


def test_a_keras_file_has_its_inputs(ada):
    layers = [
        {"class_name": "InputLayer", "config": {"name": "pixels", "batch_shape": [None, 64], "dtype": "float32"}},
        {"class_name": "Dense", "config": {"name": "scores"}},
    ]
    found = read(version_of(job_of(ada), content={"m.keras": keras({"config": {"layers": layers}})}))
    assert (found["format"], found["framework"], found["framework_version"]) == ("keras", "Keras", "3.15.1")
    assert found["signatures"][0]["inputs"] == [{"name": "pixels", "dtype": "float32", "shape": [None, 64]}]
    assert found["signatures"][0]["outputs"] == [{"name": "scores", "dtype": "", "shape": None}]


@pytest.mark.parametrize(
    "content",
    [
        {"saved_model.pb": saved_model()[:-5]},
        {"saved_model.pb": b"\xff" * 4000},
        {"m.keras": keras({"config": {}})[:-30]},
        {"m.keras": b"[" * 100_000},
    ],
)
def test_a_broken_file_is_said_to_be_broken(ada, content):
    found = read(version_of(job_of(ada), content=content))
    assert found["problem"].startswith("The file cannot be read")
    assert found["signatures"] == []


def test_a_config_nested_too_deeply_harms_nothing(ada):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("config.json", "[" * 10_000_000)
        archive.writestr("metadata.json", "{}")
    assert read(version_of(job_of(ada), content={"m.keras": out.getvalue()}))["problem"]


def test_of_a_large_file_both_ends_are_read(ada, monkeypatch):
    monkeypatch.setattr(contents, "WHOLE", 4000)
    monkeypatch.setattr(contents, "END", 1000)
    version = version_of(job_of(ada), content={"saved_model.pb": saved_model(graph=b"\1" * 100_000)})
    assert read(version)["signatures"][0]["name"] == "serving_default"


def test_a_file_that_is_missing_is_said_to_be(ada):
    version = version_of(job_of(ada))
    storage().delete(file_key(version, "saved_model.pb"))
    assert "missing" in read(version)["problem"]


def test_what_is_no_model_has_no_signature(ada):
    found = read(version_of(job_of(ada), content={"weights.bin": b"1"}))
    assert (found["format"], found["problem"], found["signatures"]) == ("other", "", [])
