"""Which files of an input are put in place before the script starts, and which s3:// paths lead into it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from yardmaster_runner import input_files
from yardmaster_runner.data.description import Description, Feature, Shard, to_text
from yardmaster_runner.data.inputs import Input
from yardmaster_runner.data.s3_paths import entries_at, entry_at, leads_to_inputs, mapped
from yardmaster_runner.order import Bundle, FilesPage, Limits, Order, RemoteFile
from yardmaster_runner.stage import Stager

SPLITS = {
    "train": tuple(Shard(f"train/{n}.tfrecord", 1, 1) for n in range(5)),
    "validation": tuple(Shard(f"validation/{n}.tfrecord", 1, 1) for n in range(2)),
}
TEXT = to_text(Description({"text": Feature("bytes", (), "utf8")}, SPLITS))
PATHS = sorted(
    [one.path for shards in SPLITS.values() for one in shards]
    + ["classes.txt", "dataset.json", "more/0.tfrecord", "more/1.tfrecord.gz"]
)


class Staging:
    """A stager whose store has every file, and which counts the pages that are asked for."""

    def __init__(
        self, top: Path, monkeypatch: pytest.MonkeyPatch, *, described: bool = True, per_page: int = 3
    ) -> None:
        self.top, self.per_page = top, per_page
        self.files = [RemoteFile(path, 1, "", "") for path in PATHS if described or path != "dataset.json"]
        self.asked: list[str] = []

        def fetch(stager: Stager, version, bundle, file: RemoteFile) -> None:
            place = Path(version.path_of(file))
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(TEXT if file.path == "dataset.json" else "x")

        monkeypatch.setattr(Stager, "_fetch", fetch)
        (top / "cache").mkdir()

    def more(self, version: str, after: str) -> FilesPage:
        self.asked.append(after)
        return self.page(after)

    def page(self, after: str) -> FilesPage:
        rest = [file for file in self.files if file.path > after]
        some = rest[: self.per_page]
        return FilesPage(tuple(some), some[-1].path if len(rest) > len(some) else "")

    def place(self, role: str, index: int, workers: int, **how: bool) -> tuple[list[str], Bundle | None]:
        first = self.page("")
        bundle = Bundle("v1", "d", first.files, next=first.next, **how)
        order = Order(
            "j", 1, "between_graph", "t.py", (), {}, {}, {"worker": workers, "ps": 1}, 1.0, None, (bundle,), None,
            Limits(),
        )  # fmt: skip
        folder = self.top / f"{role}-{index}"
        stager = Stager(None, str(self.top / "cache"), None, self.more)
        rest = input_files.place(stager, order, bundle, str(folder), (role, index))
        return sorted(str(one.relative_to(folder)) for one in folder.rglob("*") if one.is_file()), rest


@pytest.fixture
def staging(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Staging:
    return Staging(tmp_path, monkeypatch)


def test_the_list_of_a_streamed_input_is_read_once(staging: Staging) -> None:
    placed, rest = staging.place("worker", 0, 1, is_streamed=True)
    assert placed == ["classes.txt", "dataset.json"]
    assert rest is not None
    assert [file.path for file in rest.files] == PATHS
    assert staging.asked == [PATHS[2], PATHS[5], PATHS[8]]


def test_each_task_has_its_own_shards_of_each_split_and_may_ask_for_the_others(staging: Staging) -> None:
    first, rest = staging.place("worker", 0, 2, is_divided=True)
    second, _ = staging.place("worker", 1, 2, is_divided=True)
    assert {*first} & {*second} == {"classes.txt", "dataset.json"}
    assert sorted({*first, *second}) == PATHS
    assert [one for one in first if one.startswith("train/")] == [f"train/{n}.tfrecord" for n in (0, 2, 4)]
    assert [one for one in second if one.startswith("validation/")] == ["validation/1.tfrecord"]
    assert rest is not None
    assert [file.path for file in rest.files] == PATHS


def test_shards_that_nothing_describes_are_divided_by_their_order(tmp_path: Path, monkeypatch) -> None:
    staging = Staging(tmp_path, monkeypatch, described=False)
    parts = [staging.place("worker", number, 4, is_divided=True)[0] for number in range(4)]
    shards = [[one for one in part if one != "classes.txt"] for part in parts]
    assert sorted(one for part in shards for one in part) == [one for one in PATHS if "tfrecord" in one]
    assert [len(part) for part in shards] == [3, 2, 2, 2]


def test_a_parameter_server_gets_no_shards_and_an_evaluator_or_a_single_worker_all(staging: Staging) -> None:
    assert staging.place("ps", 0, 2, is_divided=True)[0] == ["classes.txt", "dataset.json"]
    for role, workers in (("evaluator", 2), ("worker", 1)):
        placed, rest = staging.place(role, 0, workers, is_divided=True)
        assert (placed, rest) == (PATHS, None)
    assert staging.place("worker", 1, 2)[0] == PATHS


def test_a_description_on_a_later_page_is_found(tmp_path: Path, monkeypatch) -> None:
    staging = Staging(tmp_path, monkeypatch, per_page=1)
    placed, _ = staging.place("worker", 1, 5, is_divided=True)
    assert [one for one in placed if one.startswith("train/")] == ["train/1.tfrecord"]


def inputs_in(top: Path, **stand_ins: str) -> Sequence[Input]:
    for name in stand_ins:
        (top / name / "more").mkdir(parents=True)
        (top / name / "more" / "x.csv").write_text("a,b")
    return [Input(name, f"set-{name}", str(top / name), stands_for=path) for name, path in stand_ins.items()]


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("theirs/data/more/x.csv", ("a", "more/x.csv")),
        ("theirs/data", ("a", "")),
        ("theirs/data/", ("a", "")),
        ("theirs/data/inner/x.csv", ("b", "x.csv")),
        ("theirs/data/innermost/x.csv", ("a", "innermost/x.csv")),
        ("theirs/database/x.csv", None),
        ("theirs", None),
        ("theirs/data/../c/x.csv", None),
        ("other/a/x.csv", None),
        ("other/c/x.csv", ("c", "x.csv")),
        ("set-c/x.csv", ("c", "x.csv")),
        ("theirs/data/c/x.csv", ("a", "c/x.csv")),
    ],
)
def test_what_an_input_stands_for_comes_before_what_it_is_called(tmp_path: Path, path: str, found) -> None:
    known = inputs_in(tmp_path, a="s3://theirs/data", b="s3://theirs/data/inner/", c="")
    got = mapped(path, known)
    assert (got and (got[0].name, got[1])) == found


def test_an_only_input_that_stands_for_a_path_stands_for_no_other(tmp_path: Path) -> None:
    assert mapped("any/more/x.csv", inputs_in(tmp_path / "1", a="s3://theirs")) is None
    assert mapped("any/more/x.csv", inputs_in(tmp_path / "2", a="")) is not None


def test_folders_above_what_inputs_stand_for_can_be_listed(tmp_path: Path) -> None:
    known = inputs_in(tmp_path, a="s3://theirs/data", b="s3://theirs/data/inner")
    assert leads_to_inputs("", known) == ["theirs"]
    assert [one["name"] for one in entries_at("theirs", known)] == ["theirs/data"]
    assert [one["name"] for one in entries_at("theirs/data", known)] == ["theirs/data/inner", "theirs/data/more"]
    assert entry_at("theirs", known)["type"] == entry_at("theirs/data/more", known)["type"] == "directory"
    assert entry_at("theirs/data/more/x.csv", known) == {"name": "theirs/data/more/x.csv", "size": 3, "type": "file"}
    with pytest.raises(FileNotFoundError, match=r"y.csv is not in the input 'a'"):
        entry_at("theirs/data/y.csv", known)
