"""Commands beside a portal mean the cluster that `make up` chose for it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from portal.cluster import choice

ROOT = Path(__file__).resolve().parents[3]
SETTINGS = {"YARDMASTER_KUBERNETES": "1", "YARDMASTER_TASK_URL": "http://10.0.0.1:8321"}
DOCTOR = ["manage.py", "doctor"]


@pytest.fixture
def home(tmp_path):
    (tmp_path / "run").mkdir()
    choice.note_settings(tmp_path, SETTINGS)
    return tmp_path


def of(home, arguments=DOCTOR, **variables):
    return choice.settings_for_command(arguments, {"YARDMASTER_HOME": str(home), **variables}, ROOT)


def test_a_command_that_asks_engines_is_told_what_the_portal_was_told(home):
    assert of(home) == SETTINGS
    assert of(home, ["manage.py", "engine_namespaces", "--remove"]) == SETTINGS


def test_other_commands_are_told_nothing(home):
    assert of(home, ["manage.py", "conductor"]) == {}
    assert of(home, ["manage.py"]) == {}


def test_the_operator_s_own_variables_stand(home):
    assert of(home, YARDMASTER_KUBERNETES="0") == {}
    assert of(home, YARDMASTER_KUBECONFIG="/etc/kubeconfig") == {}
    assert of(home, YARDMASTER_TASK_URL="http://proxy") == {"YARDMASTER_KUBERNETES": "1"}


def test_a_start_without_the_cluster_ends_what_an_earlier_one_was_told(home):
    choice.note_settings(home, {})
    assert of(home) == {}


@pytest.mark.parametrize("text", ["", "no JSON", "[]", "3"])
def test_a_broken_note_is_none(home, text):
    (home / "run" / "cluster-settings.json").write_text(text)
    assert of(home) == {}


def test_manage_py_takes_it_up(home):
    """The kubeconfig that the note names is not there: only one that was told of it can complain of it."""
    choice.note_settings(
        home, {**SETTINGS, "YARDMASTER_KUBECONFIG": str(home / "none"), "YARDMASTER_KUBERNETES_IMAGE": "tasks:1"}
    )
    bare = {name: value for name, value in os.environ.items() if not name.startswith("YARDMASTER_KUBE")}
    done = subprocess.run(
        [sys.executable, "manage.py", "engine_namespaces"], cwd=ROOT, capture_output=True, text=True, check=False,
        timeout=120, env={**bare, "YARDMASTER_HOME": str(home), "YARDMASTER_SECRET_KEY": "x" * 40},
    )  # fmt: skip
    assert "kubeconfig cannot be used" in done.stdout + done.stderr
