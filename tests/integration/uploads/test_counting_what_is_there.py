"""What an upgrade counts of uploads that were there before: in steps, and again without harm."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest
from django.apps import apps
from django.db import migrations

from apps.uploads.models import FileBlock, StorageAccount, Upload
from tests.integration.many_files import version_of

UPGRADE: Any = import_module("apps.uploads.migrations.0012_count_what_is_there")


@pytest.mark.parametrize("at_once", [1, 200])
def test_files_and_bytes_are_counted_in_steps_and_once(ada, bob, monkeypatch, at_once):
    monkeypatch.setattr(UPGRADE, "AT_ONCE", at_once)
    versions = [version_of(ada, 1_200), version_of(ada, 3), version_of(bob, 5), version_of(bob, 7)]
    Upload.objects.filter(pk=versions[3].upload_id).update(state="deleting")
    Upload.objects.update(files_held=0)
    FileBlock.objects.update(size=0)
    for _ in range(2):
        UPGRADE.count(apps, None)
        held = dict(Upload.objects.values_list("pk", "files_held"))
        assert [held[one.upload_id] for one in versions] == [1_200, 3, 5, 0]
        accounts = dict(StorageAccount.objects.values_list("namespace__owner", "files"))
        assert accounts == {ada.pk: 1_203, bob.pk: 5}
        sizes = FileBlock.objects.filter(upload=versions[0].upload_id).order_by("number").values_list("size", flat=True)
        assert list(sizes) == [1_000, 200]


def test_no_step_shares_a_transaction_with_a_change_of_tables():
    assert not UPGRADE.Migration.atomic
    assert all(isinstance(one, migrations.RunPython) for one in UPGRADE.Migration.operations)
    for name in ("0010_files_held", "0011_bytes_of_blocks"):
        before: Any = import_module(f"apps.uploads.migrations.{name}").Migration
        assert not any(isinstance(one, migrations.RunPython) for one in before.operations)
