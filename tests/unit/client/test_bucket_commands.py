"""`yardmaster datasets register`, `rescan` and `buckets`, and `yardmaster uploads`."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any

import pytest

from yardmaster_client.cli import buckets
from yardmaster_client.cli.main import run
from yardmaster_client.portal import Yardmaster

BUCKET = {
    "id": "b1", "name": "big", "namespace": "ada", "bucket": "b", "prefix": "p", "endpoint": "https://s3.example.org",
    "secret": "", "state": "ready", "problem": None, "files": 7, "bytes": 5, "left_out": 2,
    "left_out_first": [{"path": "dot.", "reason": "ends with a dot"}],
}  # fmt: skip
UPLOAD = {
    "id": "u1", "kind": "dataset", "state": "open", "file_count": 3, "size": 5, "created_at": "x", "expires_at": "y",
}  # fmt: skip


def version(number: int) -> SimpleNamespace:
    """The dataset, with this as its newest version."""
    return SimpleNamespace(id="d1", name="big", latest=SimpleNamespace(number=number))


class Portal:
    """Answers as a portal would, and notes what it was asked."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.datasets = SimpleNamespace(get=lambda _: self.dataset)
        self.dataset = version(2)

    def __enter__(self) -> Portal:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def buckets(self) -> list[dict[str, Any]]:
        return [BUCKET]

    def bucket_register(self, **facts: str) -> dict[str, Any]:
        self.asked.append((facts["bucket"], facts["prefix"]))
        return BUCKET

    def bucket_rescan(self, dataset: str, *, secret: str) -> dict[str, Any]:
        self.asked.append((dataset, secret))
        return BUCKET

    def bucket_wait(self, bucket: str, each: Any) -> dict[str, Any]:
        each(BUCKET | {"state": "scanning", "problem": {"detail": "It answered SlowDown."}})
        each(BUCKET)
        return BUCKET

    def uploads(self, **filters: str) -> list[dict[str, Any]]:
        self.asked.append(filters)
        return [UPLOAD]

    def upload_discard(self, upload: str) -> None:
        self.asked.append(upload)


@pytest.fixture
def portal(monkeypatch: pytest.MonkeyPatch) -> Portal:
    made = Portal()
    monkeypatch.setattr(Yardmaster, "from_environment", lambda: made)
    monkeypatch.setattr(buckets, "find_item", lambda *_: version(1))
    return made


@pytest.mark.parametrize(
    ("address", "parts"),
    [
        ("s3://b", ("b", "")),
        ("S3://b/data/x/", ("b", "data/x")),
        ("s3://b/data#2026/x", ("b", "data#2026/x")),
        ("s3://b/what?/100%25", ("b", "what?/100%25")),
    ],
)
def test_an_address_is_taken_as_it_is_written(portal: Portal, address: str, parts: tuple[str, str]):
    assert run(["datasets", "register", address, "--name", "big", "--secret", "KEYS"]) == 0
    assert portal.asked == [parts]


@pytest.mark.parametrize("address", ["b/data", "s3:///data", "s3:b", "https://b/data"])
def test_what_is_no_bucket_is_refused(portal: Portal, address: str):
    assert run(["datasets", "register", address, "--name", "big", "--secret", "KEYS"]) == 2
    assert portal.asked == []


def test_a_scan_says_why_it_is_tried_again_and_what_is_left_out(portal: Portal, capsys: pytest.CaptureFixture[str]):
    assert run(["datasets", "rescan", "big", "--secret", "OTHERS"]) == 0
    assert portal.asked == [("d1", "OTHERS")]
    said = " ".join(capsys.readouterr().err.split())
    for words in ("It answered SlowDown. The scan continues", "dot.", "2 objects are left out, 1 of them not shown"):
        assert words in said


def test_registered_buckets_are_listed(portal: Portal, capsys: pytest.CaptureFixture[str]):
    assert run(["datasets", "buckets"]) == 0
    shown = "".join(capsys.readouterr().out.split())
    for words in ("big", "s3://b/p", "(deleted)", "ready"):
        assert words in shown


def test_unfinished_uploads_are_listed_and_discarded(portal: Portal, capsys: pytest.CaptureFixture[str]):
    assert run(["uploads", "list", "--namespace", "ada"]) == 0
    assert "u1" in capsys.readouterr().out
    assert run(["uploads", "discard", "u1", "u2"]) == 0
    assert portal.asked == [{"namespace": "ada"}, "u1", "u2"]


def test_a_scan_again_says_whether_there_is_a_new_version(portal: Portal, capsys: pytest.CaptureFixture[str]):
    assert run(["datasets", "rescan", "big"]) == 0
    assert "big@2 is there." in capsys.readouterr().err
    portal.dataset = version(1)
    assert run(["datasets", "rescan", "big"]) == 0
    assert "Nothing has changed: big@1 is still the newest version." in capsys.readouterr().err


def test_keys_of_a_bucket_are_said_to_be_for_registering(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    portal = Portal()
    portal.namespaces = lambda: [SimpleNamespace(id="n1", personal=True, role="manager")]  # type: ignore[attr-defined]
    portal.secret_set = lambda *asked: portal.asked.append(asked)  # type: ignore[attr-defined]
    monkeypatch.setattr(Yardmaster, "from_environment", lambda: portal)
    for words, said in (([], "Tasks that start from now on"), (["--bucket-keys"], "datasets register --secret")):
        monkeypatch.setattr("sys.stdin", io.StringIO("access\nsecret\n"))
        assert run(["secrets", "set", "KEYS", *words]) == 0
        assert said in capsys.readouterr().err
    assert portal.asked[1][2] == {"kind": "s3", "access_key": "access", "secret_key": "secret"}
