"""The files of a version by folder, counted from the places at which folders begin and end."""

from __future__ import annotations

from collections import defaultdict

import pytest

from apps.errors import NotFound
from apps.uploads import file_blocks
from apps.uploads.models import FileBlock
from apps.uploads.versioned import folders
from apps.uploads.versioned.folders import folder_page
from tests.integration.many_files import version_of
from yardmaster.storage.file_list import ListedFile

PATHS = [
    "a", "a-b/x", "a-b/y", "a/b/c", "a/b/d/e", "a/c", "a0", "b/1", "b/2", "b/3", "b/4/5", "b/4/6", "c.txt",
    "d/e/f/g", "d/e/f/h", "z/é", "名/a", "名/b", "🎈/x",
]  # fmt: skip


def _expected(paths: list[str], prefix: str) -> list[tuple[str, int, int]]:
    """Path, files and bytes of each entry, counted one by one; the size of a file is its number."""
    found: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for number, path in enumerate(sorted(paths)):
        if path.startswith(prefix):
            name, slash, _ = path[len(prefix) :].partition("/")
            files, size = found[prefix + name + slash]
            found[prefix + name + slash] = files + 1, size + number
    return [(path, *amounts) for path, amounts in found.items()]


@pytest.mark.parametrize("block", [1, 2, 3, 5, 100])
@pytest.mark.parametrize("at_once", [(1,), (1, 3)])
@pytest.mark.parametrize("start", [12 << 10, 30], ids=["usual_paths", "long_paths"])
def test_every_folder_is_what_a_walk_over_all_files_finds(ada, block, at_once, start, monkeypatch):
    monkeypatch.setattr(file_blocks, "BLOCK", block)
    monkeypatch.setattr(folders, "BLOCK", block)
    monkeypatch.setattr(folders, "_AT_ONCE", at_once)
    monkeypatch.setattr(folders, "_START", start)
    version = version_of(ada, 1)
    FileBlock.objects.all().delete()
    files = [ListedFile(path, number, "", "") for number, path in enumerate(sorted(PATHS))]
    file_blocks.manifest_replace(version.upload_id, files)
    for folder in ("", "a", "a/b", "a/b/d", "a-b", "b", "b/4", "d", "d/e/f", "名", "🎈", "z/"):
        prefix = folder.rstrip("/") + "/" if folder else ""
        for size in (2, 100):
            rows, cursor = [], ""
            while cursor is not None:
                page = folder_page(version, folder, cursor, size)
                rows += [(one.path, one.files, one.size) for one in page.rows]
                cursor = page.next
            assert rows == _expected(PATHS, prefix), (folder, size)
    with pytest.raises(NotFound):
        folder_page(version, "a/none", "")


@pytest.mark.long
def test_a_page_of_a_million_files_costs_few_statements(ada, signed_in, django_assert_max_num_queries, monkeypatch):
    version = version_of(ada, 1_000_000)
    client, address = signed_in(ada), f"/api/v1/dataset-versions/{version.pk}/entries/"
    with django_assert_max_num_queries(8):
        rows = client.get(f"{address}?folder=train").json()["results"]
    assert [(one["path"], one["files"], one["size"]) for one in rows] == [
        (f"train/{number:03}/", 10_000, 10_000) for number in range(100)
    ]
    with django_assert_max_num_queries(8):
        assert client.get(address).json()["results"] == [
            {"name": "train", "path": "train/", "is_folder": True, "files": 1_000_000, "size": 1_000_000}
        ]
    monkeypatch.setattr(folders, "_START", 4 << 10)  # as if the paths of a block took more than is read of it at first
    with django_assert_max_num_queries(8):
        assert client.get(f"{address}?folder=train").json()["results"] == rows
    inner = client.get(f"{address}?folder=train/042&page_size=3").json()
    assert [one["name"] for one in inner["results"]] == [f"{420_000 + number:07}.txt" for number in range(3)]
    assert client.get(inner["next"]).json()["results"][0]["name"] == "0420003.txt"
    assert client.get(f"{address}?folder=none").status_code == 404
    assert client.get(f"{address}?cursor=none").status_code == 400
    with django_assert_max_num_queries(24):
        shown = client.get(f"/datasets/{version.parent_id}/?folder=train").content.decode()
    assert "10,000" in shown
    assert "folder=train/007" in shown
    assert client.get(f"/datasets/{version.parent_id}/?folder=none").status_code == 404


def test_the_page_of_a_folder_says_what_is_wrong_with_a_file(ada, signed_in):
    version = version_of(ada, 1)
    FileBlock.objects.all().delete()
    files = [
        ListedFile("a/1.tfrecord", 1),
        ListedFile("a/2.tfrecord", 1, fault="Cut off.", records=3),
        ListedFile("b", 1),
    ]
    file_blocks.manifest_replace(version.upload_id, files)
    shown = signed_in(ada).get(f"/datasets/{version.parent_id}/?folder=a").content.decode()
    table = shown[shown.index("stacking files") :].split("</table>")[0]
    assert table.count('class="fault"') == 1
    assert table.index("1.tfrecord") < table.index("2.tfrecord") < table.index("Cut off.")
