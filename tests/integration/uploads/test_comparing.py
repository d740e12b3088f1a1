"""Two stored lists are compared block by block, in one go or in steps, whatever their blocks hold."""

from __future__ import annotations

import random
import uuid
from itertools import count

import pytest

from apps.uploads import file_blocks
from apps.uploads.models import Upload
from apps.uploads.versioned import comparing
from apps.uploads.versioned.comparing import lists_compare
from apps.uploads.versioned.selectors import Changes, changes_between
from tests.integration.many_files import path_of, version_of
from yardmaster.storage.file_list import ListedFile


def _list(ada, contents: dict[str, str]) -> uuid.UUID:
    upload_id = version_of(ada, 1).upload_id
    files = [ListedFile(path, 1, "", sha256) for path, sha256 in sorted(contents.items())]
    file_blocks.manifest_replace(upload_id, files)
    Upload.objects.filter(pk=upload_id).update(file_count=len(files))
    return upload_id


def _in_steps(before: uuid.UUID | None, after: uuid.UUID) -> Changes:
    """All of it, each step as short as it may be."""
    added, changed, removed, behind = [], [], [], ""
    while behind is not None:
        ticks = count()
        found = lists_compare(before, after, behind=behind, patience=0.5, clock=lambda ticks=ticks: float(next(ticks)))
        added += found.changes.added
        changed += found.changes.changed
        removed += found.changes.removed
        behind = found.next
    return Changes(added, changed, removed, {"added": len(added), "changed": len(changed), "removed": len(removed)})


@pytest.mark.parametrize("block", [1, 3, 7])
def test_blocks_give_what_the_lists_give(ada, block, monkeypatch):
    for module in (file_blocks, comparing):
        monkeypatch.setattr(module, "BLOCK", block)
    chance = random.Random(block)
    for _ in range(6):
        old = {f"f{chance.randrange(40):02}": str(chance.randrange(3)) for _ in range(chance.randrange(30))}
        new = {path: sha256 for path, sha256 in old.items() if chance.random() < 0.8} | {
            f"f{chance.randrange(40):02}": str(chance.randrange(3)) for _ in range(1 + chance.randrange(10))
        }
        lists = [[ListedFile(path, 1, "", one[path]) for path in sorted(one)] for one in (old, new)]
        before, after = _list(ada, old or {"only": "0"}), _list(ada, new)
        expected = changes_between(lists[0] if old else [ListedFile("only", 1, "", "0")], lists[1])
        assert lists_compare(before, after).changes == expected
        assert _in_steps(before, after) == expected
        assert lists_compare(None, after).changes.counts["added"] == len(new)


def test_what_is_the_same_on_both_sides_is_not_unpacked(ada, monkeypatch):
    before, after = version_of(ada, 30_000), version_of(ada, 30_000, changed=12_345)
    unpacked = []
    contents = comparing.contents
    monkeypatch.setattr(comparing, "contents", lambda packed: unpacked.append(packed) or contents(packed))
    found = lists_compare(before.upload_id, after.upload_id)
    assert (found.changes.changed, found.looked_at, len(unpacked)) == ([path_of(12_345)], 30_000, 2)


def test_the_page_compares_in_steps_with_progress(ada, client, monkeypatch):
    """A request takes about a second; what was found so far goes on with the next."""
    from apps.datasets import pages

    before, after = version_of(ada, 3_000), version_of(ada, 3_500, changed=10)
    after.parent, after.number = before.parent, 2
    after.save()
    monkeypatch.setattr(pages, "_COMPARE_PATIENCE", -1.0)
    client.force_login(ada)
    address = f"/datasets/{before.parent_id}/changes/"
    first = client.get(f"{address}?version=2&since=1").content.decode()
    assert "1,000 of 3,500 files" in first
    assert "1 changed" in first
    following = first.partition('hx-get="')[2].partition('"')[0].replace("&amp;", "&")
    steps = 0
    while following:
        steps += 1
        part = client.get(following, headers={"HX-Request": "true"}).content.decode()
        following = part.partition('hx-get="')[2].partition('"')[0].replace("&amp;", "&")
    assert "500 added, 1 changed, 0 removed" in part
    assert 2 <= steps <= 4
    monkeypatch.setattr(pages, "_COMPARE_PATIENCE", 10.0)
    assert "No differences" in client.get(f"{address}?version=2&since=2").content.decode()
