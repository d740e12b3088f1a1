"""Which files differ between two versions."""

from __future__ import annotations

from apps.uploads.versioned.selectors import changes_between


def test_paths_are_added_changed_and_removed():
    found = changes_between({"same": "1", "other": "2", "gone": "3"}, {"same": "1", "other": "9", "new": "4"})
    assert (found.added, found.changed, found.removed) == (["new"], ["other"], ["gone"])


def test_equal_manifests_have_no_changes():
    assert not changes_between({"a": "1"}, {"a": "1"})


def test_against_nothing_all_is_new_and_in_order():
    assert changes_between({}, {"b": "1", "a": "1"}).added == ["a", "b"]
