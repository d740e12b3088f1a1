"""`manage.py engine_namespaces`: what engines keep is listed, and what cannot be asked is no empty list."""

from __future__ import annotations

import io
import json

import pytest
from django.core.management import CommandError, call_command

from apps.jobs.engines.namespaces import engine_namespaces_keep
from tests.integration.jobs.conftest import stores
from tests.integration.namespaces.placed import PlacedEngine, placed_world

__all__ = ["placed_world", "stores"]


@pytest.fixture
def lists(monkeypatch, placed_world):
    monkeypatch.setattr(PlacedEngine, "namespaces_there", lambda self: tuple(self.namespaces), raising=False)


def places(*words: str) -> dict[str, list[str]]:
    out = io.StringIO()
    call_command("engine_namespaces", *words, stdout=out)
    return json.loads(out.getvalue())


def test_what_is_there_is_listed_and_removed_but_for_what_is_kept(lists, ada, bob):
    ids = [one.personal_namespace.pk for one in (ada, bob)]
    for one in ids:
        engine_namespaces_keep(one)
    assert places() == {"placed": sorted(map(str, ids))}
    assert places("--remove", f"--keep={ids[1]}", "--patience=5") == {"placed": [str(ids[1])]}


def test_an_engine_that_cannot_be_made_is_an_error_and_not_an_empty_list(lists, settings, tmp_path):
    cluster = "yardmaster.engines.kubernetes.KubernetesEngine"
    options = {"kubeconfig": str(tmp_path / "none"), "tasks": {"image": "tasks:1"}}
    settings.YARDMASTER_ENGINES = {**settings.YARDMASTER_ENGINES, "away": {"class": cluster, "options": options}}
    with pytest.raises(CommandError, match=r"away: .*kubeconfig"):
        places()
