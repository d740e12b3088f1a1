"""Job files: what they are, where they are wrong, and how the command line changes them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from yardmaster_client.cli.job_views import fixes_of
from yardmaster_client.jobfile import JobFileError, read_job_file

GOOD = """
name: digits
namespace: team
roles:
  worker: {replicas: 2, cpu: 0.5}
arguments: [--steps=200, "--date", 2024-01-02]
environment: {A: yes, B: "1", C: on}
"""


def written(tmp_path: Path, text: str, name: str = "job.yaml") -> Path:
    file = tmp_path / name
    file.write_text(text)
    return file


def test_a_file_is_a_spec_with_a_namespace_and_an_engine_beside_it(tmp_path: Path) -> None:
    job = read_job_file(written(tmp_path, GOOD))
    assert (job.namespace, job.engine) == ("team", None)
    assert job.spec["roles"] == {"worker": {"replicas": 2, "cpu": 0.5}}
    assert "namespace" not in job.spec


def test_what_looks_like_a_date_or_yes_stays_text(tmp_path: Path) -> None:
    spec = read_job_file(written(tmp_path, GOOD)).spec
    assert spec["arguments"] == ["--steps=200", "--date", "2024-01-02"]
    assert spec["environment"] == {"A": "yes", "B": "1", "C": "on"}


def test_true_false_numbers_and_null_are_what_json_has(tmp_path: Path) -> None:
    spec = read_job_file(written(tmp_path, "a: true\nb: false\nc: 1\nd: 1.5\ne: null\nf: ~\n")).spec
    assert spec == {"a": True, "b": False, "c": 1, "d": 1.5, "e": None, "f": None}


def test_json_is_read_too(tmp_path: Path) -> None:
    job = read_job_file(written(tmp_path, '{"name": "x", "engine": "local"}', "job.json"))
    assert (job.spec, job.engine) == ({"name": "x"}, "local")


def test_anchors_and_merges_work(tmp_path: Path) -> None:
    text = "a: &one {cpu: 1}\nb: {<<: *one, gpus: 2}\n"
    assert read_job_file(written(tmp_path, text)).spec["b"] == {"cpu": 1, "gpus": 2}


@pytest.mark.parametrize(
    ("text", "name", "place"),
    [
        ("name: a\nroles: {x: [1\n", "job.yaml", (3, 1)),
        ("name: a\n\tb: c\n", "job.yaml", (2, 1)),
        ("name: a\nname: b\n", "job.yaml", (2, 1)),
        ("roles:\n  worker: {cpu: 1}\n  worker: {cpu: 2}\n", "job.yaml", (3, 3)),
        ("? [1, 2]\n: x\n", "job.yaml", (1, 3)),
        ("a: !!python/object/apply:os.system [id]\n", "job.yaml", (1, 4)),
        ("- a\n- b\n", "job.yaml", (1, 1)),
        ("", "job.yaml", (1, 1)),
        ('{"a": 1,}', "job.json", (1, 8 if sys.version_info >= (3, 13) else 9)),
        ('{"a": 1, "a": 2}', "job.json", (None, None)),
        ("name: a\nnamespace: 5\n", "job.yaml", (None, None)),
        ("name: !!bool maybe\n", "job.yaml", (None, None)),
        ("name: !!int ''\n", "job.yaml", (None, None)),
        ("name: a\narguments: [&a '" + "x" * 2000 + "'" + ", *a" * 600 + "]\n", "job.yaml", (1, 1)),
    ],
)
def test_an_error_names_file_line_and_column(tmp_path: Path, text: str, name: str, place: tuple[Any, Any]) -> None:
    with pytest.raises(JobFileError) as caught:
        read_job_file(written(tmp_path, text, name))
    assert (caught.value.line, caught.value.column) == place
    assert name in str(caught.value)


def test_a_missing_or_binary_file_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(JobFileError, match="cannot be read"):
        read_job_file(tmp_path / "none.yaml")
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(JobFileError, match="UTF-8"):
        read_job_file(tmp_path / "binary.yaml")


def test_values_are_set_by_path(tmp_path: Path) -> None:
    changes = [
        "roles.worker.replicas=3",
        "roles.ps.cpu=0.5",
        "arguments.0=--steps=9",
        "name=other",
        "success={percent: 50}",
    ]
    spec = read_job_file(written(tmp_path, GOOD), changes).spec
    assert spec["roles"] == {"worker": {"replicas": 3, "cpu": 0.5}, "ps": {"cpu": 0.5}}
    assert spec["arguments"][0] == "--steps=9"
    assert (spec["name"], spec["success"]) == ("other", {"percent": 50})


@pytest.mark.parametrize("change", ["name", "=x", "a..b=1", "arguments.9=x", "name.first=x", "arguments.x=1"])
def test_a_change_that_leads_nowhere_is_refused(tmp_path: Path, change: str) -> None:
    with pytest.raises(JobFileError, match="--set"):
        read_job_file(written(tmp_path, GOOD), [change])


def test_one_more_item_is_added_to_a_list(tmp_path: Path) -> None:
    changes = ["arguments+=--train_dir=$LOG_DIR", "arguments+=3", "requirements+=pyyaml"]
    spec = read_job_file(written(tmp_path, GOOD), changes).spec
    assert spec["arguments"][-2:] == ["--train_dir=$LOG_DIR", "3"]
    assert spec["requirements"] == ["pyyaml"]


@pytest.mark.parametrize("change", ["name+=x", "roles+=x", "name.first+=x"])
def test_only_a_list_takes_one_more_item(tmp_path: Path, change: str) -> None:
    with pytest.raises(JobFileError, match="there is no list"):
        read_job_file(written(tmp_path, GOOD), [change])


def test_a_fix_is_shown_as_the_option_that_makes_it() -> None:
    fixes = [
        {"label": "Add it", "field": "arguments", "value": "--x=$LOG_DIR", "adds": True},
        {"label": "Pass none", "field": "paths.log_flag", "value": "", "adds": False},
    ]
    assert fixes_of({"fixes": fixes}) == [
        "Add it: --set 'arguments+=--x=$LOG_DIR'", "Pass none: --set 'paths.log_flag=\"\"'",
    ]  # fmt: skip
    assert fixes_of({"fixes": [], "makes": "keras/mnist"}) == ["Make the dataset: yardmaster datasets make keras/mnist"]
    assert fixes_of({"makes": ""}) == fixes_of({}) == []
