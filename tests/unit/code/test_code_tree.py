"""The files of a version as folders that fold."""

from __future__ import annotations

from apps.code.tree import rows_of, tree_of


def shown(paths: list[str], chosen: str = "") -> list[str]:
    words = []
    for row in rows_of(tree_of([(path, 1) for path in paths], chosen)):
        if row.branch:
            words.append(f"{row.branch.name}{'[' if row.branch.is_open else '('}")
        else:
            words.append(row.leaf.path if row.leaf else ")")
    return words


def test_folders_come_before_files_and_both_by_name():
    assert shown(["z.py", "b/x.py", "a.py", "a/y.py"]) == ["a(", "a/y.py", ")", "b(", "b/x.py", ")", "a.py", "z.py"]


def test_the_way_to_the_chosen_file_is_open():
    assert shown(["a/b/c.py", "d/e.py"], "a/b/c.py") == ["a[", "b[", "a/b/c.py", ")", ")", "d(", "d/e.py", ")"]


def test_a_folder_whose_name_only_begins_alike_stays_shut():
    assert "a(" in shown(["a/x.py", "ab/y.py"], "ab/y.py")


def test_a_path_may_be_as_deep_as_paths_go():
    assert len(shown(["/".join("a" * 250)])) == 2 * 249 + 1


def test_no_files_are_an_empty_tree():
    assert shown([]) == []
