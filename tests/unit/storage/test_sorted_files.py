"""Files in any order come out in the order of their paths, whether they fit into memory or not."""

from __future__ import annotations

import random

from yardmaster.storage.file_list import ListedFile
from yardmaster.storage.sorted_files import SortedFiles


def test_files_come_in_the_order_of_their_paths():
    files = [ListedFile(f"{number % 7}/{number:05}.txt", number, "", "a" * 64, number) for number in range(5_000)]
    shuffled = random.Random(1).sample(files, len(files))
    for run in (10_000, 5_000, 1_500):
        with SortedFiles(run) as found:
            for file in shuffled:
                found.add(file)
            assert list(found) == sorted(files, key=lambda file: file.path)


def test_none_is_none():
    with SortedFiles() as found:
        assert list(found) == []
