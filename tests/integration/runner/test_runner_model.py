"""The model while its script still runs, and at its end."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.runner.fake_task_portal import FakeTaskPortal, uploaded
from yardmaster_runner import model_keeper
from yardmaster_runner.model_keeper import ModelKeeper
from yardmaster_runner.patience import Haste, Patience
from yardmaster_runner.portal import Portal
from yardmaster_runner.task_api import TaskApi
from yardmaster_runner.upload import Uploader, UploadFailed

FILES = {
    "saved_model.pb": b"graph" * 10,
    "variables/variables.data-00000-of-00001": b"weights" * 400_000,
    "variables/variables.index": b"index",
}
LATER = 3600.0


@pytest.fixture
def keeper(tmp_path: Path, portal: FakeTaskPortal) -> Iterator[ModelKeeper]:
    token = tmp_path / "token"
    token.write_text(portal.token)
    api = TaskApi(Portal(portal.url, str(token)), "worker", 0)
    uploader = Uploader(api, api.portal.hosts, Patience(2.0, Haste()))
    (tmp_path / "model").mkdir()
    yield ModelKeeper(uploader, uploader, str(tmp_path / "model"))
    api.portal.hosts.forget(portal.url)


def export(keeper: ModelKeeper, files: dict[str, bytes] = FILES) -> None:
    for path, content in files.items():
        place = Path(keeper._model_dir, path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)


def sent(portal: FakeTaskPortal) -> list[str]:
    return [path for method, path in portal.requests if method == "PUT"]


def kept(keeper: ModelKeeper, *, was_stopped: bool = False) -> str:
    keeper.finish(was_stopped=was_stopped, is_finished=not was_stopped)
    keeper.run()
    return keeper.trouble


def test_a_complete_export_is_sent_while_the_script_runs_and_only_put_together_at_its_end(keeper, portal):
    export(keeper)
    keeper.send_early(time.time() + LATER)
    assert len(sent(portal)) == 5
    assert uploaded(portal, "model") == []
    assert kept(keeper) == ""
    assert uploaded(portal, "model") == [FILES]
    assert len(sent(portal)) == 5
    assert len(portal.uploads) == 1


def test_a_stop_is_told_with_what_was_sent_before_it(keeper, portal):
    export(keeper)
    keeper.send_early(time.time() + LATER)
    assert kept(keeper, was_stopped=True) == ""
    (begun,) = portal.uploads.values()
    assert begun["body"]["stopped"] is True
    assert uploaded(portal, "model") == [FILES]


def test_an_export_that_changes_afterwards_is_sent_whole_and_never_mixed(keeper, portal):
    export(keeper)
    keeper.send_early(time.time() + LATER)
    changed = FILES | {"saved_model.pb": b"other" * 10}
    export(keeper, {"saved_model.pb": changed["saved_model.pb"]})
    assert kept(keeper) == ""
    assert uploaded(portal, "model") == [changed]
    assert [one["state"] for one in portal.uploads.values()] == ["open", "complete"]


def test_what_comes_beside_an_export_at_the_end_is_kept_too(keeper, portal):
    export(keeper)
    keeper.send_early(time.time() + LATER)
    export(keeper, {"labels.txt": b"a\nb\n"})
    assert kept(keeper) == ""
    assert uploaded(portal, "model") == [FILES | {"labels.txt": b"a\nb\n"}]


@pytest.mark.parametrize("lacking", list(FILES))
def test_half_an_export_is_not_sent_while_the_script_runs(keeper, portal, lacking):
    export(keeper, {path: content for path, content in FILES.items() if path != lacking})
    if lacking == "variables/variables.data-00000-of-00001":
        export(keeper, {"variables/variables.data-00000-of-00002": b"half"})
    keeper.send_early(time.time() + LATER)
    assert portal.uploads == {}


def test_an_export_that_was_just_written_is_waited_for(keeper, portal):
    export(keeper)
    keeper.send_early(time.time())
    assert portal.uploads == {}


def test_exports_of_each_epoch_do_not_fill_the_quota_with_what_has_changed(keeper, portal, monkeypatch):
    for number in range(3):
        export(keeper, {"saved_model.pb": b"%d" % number})
        export(keeper, {path: content for path, content in FILES.items() if path != "saved_model.pb"})
        keeper.send_early(time.time() + LATER)
    assert len(portal.uploads) == 1
    monkeypatch.setattr(model_keeper, "SENT_EVERY", 0.0)
    keeper.send_early(time.time() + LATER)
    assert len(portal.uploads) == 2


def test_what_was_interrupted_is_continued_at_the_end(keeper, portal):
    export(keeper)
    refused = lambda method, path: 503 if method == "PUT" and path.endswith("/1/2") else None  # noqa: E731
    portal.trouble = refused
    with pytest.raises(UploadFailed):
        keeper.send_early(time.time() + LATER)
    before = sent(portal)
    portal.trouble = lambda method, path: None
    assert kept(keeper) == ""
    assert uploaded(portal, "model") == [FILES]
    assert not {path for path in before if not path.endswith("/1/2")} & set(sent(portal)[len(before) :])


def test_an_export_that_changes_while_it_is_sent_is_given_up(keeper, portal):
    export(keeper)

    def change(method: str, path: str) -> int | None:
        if method != "PUT":
            return None
        os.utime(Path(keeper._model_dir, "saved_model.pb"), (1, 1))
        return 503

    portal.trouble = change
    with pytest.raises(UploadFailed, match="changed meanwhile"):
        keeper.send_early(time.time() + LATER)


def test_nothing_is_kept_of_a_script_that_has_failed(keeper, portal):
    export(keeper)
    keeper.send_early(time.time() + LATER)
    keeper.finish(was_stopped=False, is_finished=False)
    keeper.run()
    assert uploaded(portal, "model") == []
