"""Which files differ between two versions."""

from __future__ import annotations

from apps.uploads.versioned.selectors import changes_between
from yardmaster.storage.file_list import ListedFile


def listed(**checksums: str) -> list[ListedFile]:
    """In the order of the paths, as a version lists them."""
    return [ListedFile(path, 1, sha256=sha256) for path, sha256 in sorted(checksums.items())]


def test_paths_are_added_changed_and_removed():
    found = changes_between(listed(same="1", other="2", gone="3"), listed(same="1", other="9", new="4"))
    assert (found.added, found.changed, found.removed) == (["new"], ["other"], ["gone"])


def test_equal_manifests_have_no_changes():
    assert not changes_between(listed(a="1"), listed(a="1"))


def test_against_nothing_all_is_new_and_in_order():
    assert changes_between([], listed(b="1", a="1")).added == ["a", "b"]


def test_of_very_many_the_first_are_named_and_all_are_counted():
    found = changes_between([], listed(a="1", b="1", c="1"), 1)
    assert (found.added, found.counts["added"]) == (["a"], 3)
