"""A version of a million files: a page of its list on a real PostgreSQL against one of a thousand, a page of a folder,
what differs between two of them, a zip of it, and the memory that staging a long list takes in a task."""

from __future__ import annotations

import os
import tempfile
import time
import tracemalloc
import uuid
from collections.abc import Iterable, Iterator
from typing import Any

from tests.bench.job_list import cluster
from tests.bench.lines import Line, interleaved, median
from tests.real.postgres import programs
from yardmaster_runner.order import Bundle, FilesPage, RemoteFile
from yardmaster_runner.stage import Stager

FEW, MANY = 1_000, 1_000_000
ROUNDS = 40
PAGES = 20
STAGED_FEW, STAGED_MANY, STAGED_AT_ONCE = 5_000, 30_000, 1_000


def measure() -> Iterable[Line]:
    yield from _staging()
    if (bin_folder := programs()) is None:
        return
    with cluster(bin_folder) as database:
        os.environ["DJANGO_SETTINGS_MODULE"] = "portal.settings"
        os.environ["YARDMASTER_DATABASE_URL"] = database.url("bench")
        os.environ["YARDMASTER_SECRET_KEY"] = "only-for-measurements-" + "x" * 40
        os.environ["YARDMASTER_LOG_LEVEL"] = "WARNING"
        import django

        django.setup()
        yield from _listing()


def _listing() -> Iterator[Line]:
    from django.core.management import call_command
    from django.db import connection
    from django.test import override_settings
    from django.test.utils import CaptureQueriesContext
    from rest_framework.test import APIClient

    from apps.accounts.services import user_create
    from tests.integration.many_files import version_of

    call_command("migrate", verbosity=0, interactive=False)
    user = user_create(username="ada", password="correct horse battery")
    client = APIClient()
    client.force_login(user)
    with override_settings(ALLOWED_HOSTS=["testserver"]):
        versions = {count: version_of(user, count) for count in (FEW, MANY)}
        pages = {count: _pages(client, version) for count, version in versions.items()}
        most = 0
        for page in pages[MANY]:
            with CaptureQueriesContext(connection) as asked:
                client.get(page)
            most = max(most, len(asked))
        few, many = interleaved(lambda: _timed(client, pages[FEW]), lambda: _timed(client, pages[MANY]), ROUNDS)
        yield Line(f"a page of {MANY:,} files, statements", most, "", at_most=8)
        yield Line(f"a page of {FEW:,} files", median(few) * 1e3, "ms")
        yield Line(f"... of {MANY:,} files, ratio", median(many) / median(few), "", at_most=1.3)
        address = f"/api/v1/dataset-versions/{versions[MANY].pk}/entries/?folder=train"
        with CaptureQueriesContext(connection) as asked:
            client.get(address)
        yield Line(f"a page of a folder of {MANY:,} files, statements", len(asked), "", at_most=8)
        yield Line("a page of a folder", median(_timed(client, [address]) for _ in range(5)) * 1e3, "ms")
    other = version_of(user, MANY - FEW, changed=MANY // 2)
    yield from _comparing(versions[MANY].upload_id, other.upload_id)
    yield from _zipping(versions[MANY].upload_id)


def _comparing(before: uuid.UUID, after: uuid.UUID) -> Iterator[Line]:
    """Once with blocks that are the same on both sides, once with none: a file that was added shifts all of them."""
    from apps.uploads import file_blocks
    from apps.uploads.versioned.comparing import lists_compare
    from yardmaster.storage.file_list import ListedFile

    start = time.perf_counter()
    lists_compare(before, after, most=0)
    yield Line(f"comparing two lists of {MANY:,} files", time.perf_counter() - start, "s")
    file_blocks.manifest_replace(after, [ListedFile("a", 1), *file_blocks.manifest_of(before)])
    tracemalloc.start()
    lists_compare(before, after, most=0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    start = time.perf_counter()
    lists_compare(before, after, most=0)
    yield Line("... where no block is the same", time.perf_counter() - start, "s", at_most=10)
    yield Line("... peak memory", peak / (1 << 20), "MiB", at_most=16)


def _zipping(upload_id: uuid.UUID) -> Iterator[Line]:
    """A zip of empty files: what the directory costs."""
    from apps.uploads.files_aside import files_aside
    from apps.uploads.zip_stream import zip_chunks

    start = time.perf_counter()
    size = sum(len(piece) for piece in zip_chunks(files_aside(upload_id, "datasets/0"), lambda file: iter(())))
    yield Line(f"a zip of {MANY:,} empty files", time.perf_counter() - start, "s", note=f"{size >> 20} MiB")


def _pages(client: Any, version: Any) -> list[str]:
    """Addresses of pages throughout the list."""
    from apps.uploads.versioned.paging import _cursor
    from tests.integration.many_files import path_of

    step = version.file_count // PAGES
    address = f"/api/v1/dataset-versions/{version.pk}/files/"
    return [f"{address}?cursor={_cursor('n', path_of(at * step + 7))}" for at in range(PAGES)]


def _timed(client: Any, pages: list[str]) -> float:
    start = time.perf_counter()
    for page in pages:
        assert client.get(page).status_code == 200
    return (time.perf_counter() - start) / len(pages)


def _staging() -> Iterator[Line]:
    few, many = _staged(STAGED_FEW), _staged(STAGED_MANY)
    name = f"staging {STAGED_MANY:,} files, peak memory of that for {STAGED_FEW:,}"
    yield Line(name, many / few, "", at_most=1.3, note=f"{many / (1 << 20):.1f} MiB")


class _Local(Stager):
    """Fetches nothing: a file is one byte."""

    def _fetch(self, version: Any, bundle: Bundle, file: RemoteFile) -> None:
        place = version.path_of(file)  # no `Path`: it interns what it is made of, which would be measured
        os.makedirs(os.path.dirname(place), exist_ok=True)
        with open(place, "wb") as stream:
            stream.write(b"x")


def _staged(count: int) -> int:
    """The most memory at once."""

    def more(version: str, after: str) -> FilesPage:
        first = int(after or "0")
        last = min(count, first + STAGED_AT_ONCE)
        files = [RemoteFile(f"{at // 1000}/{at}", 1, "a" * 64, f"http://store/{at}?{'s' * 300}") for at in
                 range(first, last)]  # fmt: skip
        return FilesPage(tuple(files), str(last) if last < count else "")

    with tempfile.TemporaryDirectory(prefix="yardmaster-bench-") as home:
        first = more("v", "")
        stager = _Local(None, home, None, more)  # type: ignore[arg-type]
        tracemalloc.start()
        stager.place(Bundle("v", "", first.files, next=first.next), f"{home}/data", is_copied=False)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return peak
