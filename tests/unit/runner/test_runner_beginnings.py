"""What the runner is told: its settings, its order, and what it makes of them for the script."""

import json

import pytest

from yardmaster_runner.cache import inside
from yardmaster_runner.exits import CannotRun
from yardmaster_runner.launch import Folders, command, environment
from yardmaster_runner.order import read_order
from yardmaster_runner.settings import read_settings

VARIABLES = {
    "YARDMASTER_URL": "http://portal:8000/",
    "YARDMASTER_TOKEN_FILE": "/token",
    "YARDMASTER_ROLE": "worker",
    "YARDMASTER_INDEX": "1",
    "YARDMASTER_WORK_DIR": "/work",
}
ORDER = {
    "job": "j",
    "attempt": 2,
    "spec": {"strategy": "single", "entry_point": "train.py", "roles": {"worker": {"replicas": 2}}},
    "code": {"version": "c", "files": [{"path": "train.py", "size": 1, "sha256": "AB", "url": "u"}]},
    "inputs": [],
    "checkpoint": None,
}


def test_settings_have_sensible_folders():
    settings = read_settings(VARIABLES)
    assert settings.url == "http://portal:8000"
    assert (settings.log_dir, settings.log_dir_is_shared) == ("/work/log", False)
    assert (settings.cache_dir, settings.restart, settings.cluster) == ("/work/cache", 0, {})
    shared = read_settings({**VARIABLES, "YARDMASTER_LOG_DIR": "/shared"})
    assert (shared.log_dir, shared.log_dir_is_shared) == ("/shared", True)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("YARDMASTER_URL", ""),
        ("YARDMASTER_ROLE", "boss"),
        ("YARDMASTER_INDEX", "-1"),
        ("YARDMASTER_RESTART", "x"),
        ("YARDMASTER_CLUSTER", "{"),
        ("YARDMASTER_CLUSTER", '{"worker": "a:1"}'),
    ],
)
def test_a_wrong_setting_is_named(name, value):
    with pytest.raises(CannotRun, match=name):
        read_settings({**VARIABLES, name: value})


def test_an_order_needs_little_and_has_defaults():
    order = read_order(ORDER)
    assert order.paths["data_flag"] == "--data_dir"
    assert order.limits.spool_bytes == 64 << 20
    assert order.code.files[0].sha256 == "ab"
    assert order.grace_period == 30


@pytest.mark.parametrize("missing", ["job", "spec", "code"])
def test_an_order_that_is_none_is_refused_in_words(missing):
    with pytest.raises(CannotRun, match="order is not understood"):
        read_order({name: value for name, value in ORDER.items() if name != missing})


@pytest.mark.parametrize(
    ("roles", "task", "decides"),
    [
        (["worker"], ("worker", 0), True),
        (["worker"], ("worker", 1), False),
        (["chief", "worker"], ("chief", 0), True),
        (["chief", "worker"], ("worker", 0), False),
        (["worker", "ps"], ("ps", 0), False),
        (["worker", "evaluator"], ("evaluator", 0), False),
    ],
)
def test_one_task_decides(roles, task, decides):
    spec = {**ORDER["spec"], "roles": {role: {"replicas": 1} for role in roles}}
    assert read_order({**ORDER, "spec": spec}).is_decided_by(*task) is decides


def test_flags_that_are_empty_are_not_given():
    settings = read_settings(VARIABLES)
    spec = {**ORDER["spec"], "paths": {"data_flag": "", "log_flag": "-l"}, "arguments": ["a b"]}
    order = read_order({**ORDER, "spec": spec})
    assert command(settings, order, Folders.of(settings))[1:] == ["-u", "train.py", "-l=/work/log", "a b"]


def test_the_environment_is_the_engines_then_the_users_then_ours():
    settings = read_settings({**VARIABLES, "YARDMASTER_CLUSTER": '{"worker": ["a:1", "b:2"]}'})
    spec = {
        **ORDER["spec"],
        "strategy": "multi_worker_mirrored",
        "environment": {"LOG_DIR": "mine", "HOME": "user's", "TF_USE_LEGACY_KERAS": "0", "PYTHONPATH": "/lib"},
    }
    order = read_order({**ORDER, "spec": spec})
    inherited = {"HOME": "engine's", "PATH": "/bin", "YARDMASTER_TOKEN_FILE": "/token", "YARDMASTER_INDEX": "1"}
    result = environment(settings, order, Folders.of(settings), inherited)
    assert result["HOME"] == "user's"
    assert result["PATH"] == "/bin"
    assert result["LOG_DIR"] == "/work/log"
    assert result["TF_USE_LEGACY_KERAS"] == "0"
    assert result["PYTHONPATH"] == "/work/code:/work/offered:/lib"
    assert result["YARDMASTER_INDEX"] == "1"
    assert "YARDMASTER_TOKEN_FILE" not in result
    assert json.loads(result["TF_CONFIG"])["task"] == {"type": "worker", "index": 1}


@pytest.mark.parametrize("path", ["", "/x", "../x", "a/../x", "a/./x", "a//x", "a\\x", "a\nx", "a/"])
def test_no_path_leads_outside_its_folder(path):
    with pytest.raises(CannotRun, match="outside"):
        inside("/folder", path)


def test_a_plain_path_is_below_its_folder():
    assert inside("/folder", "a/b c.txt") == "/folder/a/b c.txt"
