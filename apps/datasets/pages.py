"""The pages of datasets: versions, files, what is in them, what changed, and whether they are intact."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, cast
from urllib.parse import quote
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, URLResolver, path

from apps.buckets.access import PREFIX
from apps.datasets.described import Described, description_of
from apps.datasets.integrity import version_check
from apps.datasets.models import Dataset, DatasetVersion
from apps.datasets.preview import Preview, preview_file
from apps.datasets.registering import bucket_of
from apps.datasets.selectors import DATASETS
from apps.errors import DomainError
from apps.stores import PICTURES_FROM
from apps.uploads.delivery import LARGE_ARCHIVE, content_type_of
from apps.uploads.versioned import pages, selectors
from apps.uploads.versioned.comparing import lists_compare
from apps.uploads.versioned.folders import FolderEntry, FolderPage, folder_page
from apps.uploads.versioned.models import Collection, Version
from apps.uploads.versioned.paging import MOST_SEARCHED, files_page
from yardmaster.errors import YardmasterError
from yardmaster.storage.base import ObjectMissing
from yardmaster.storage.file_list import ListedFile

MOST = 40


@dataclass(frozen=True)
class Bar:
    """`width` is in percent of the longest bar, `share` in percent of all."""

    label: str
    count: int
    width: float
    share: float


@dataclass(frozen=True)
class Bars:
    """In the order of the labels. `classes` is how many there are, also beyond those shown."""

    bars: list[Bar]
    classes: int
    smallest: int
    largest: int


def bars_of(counts: Mapping[str, int], most: int = MOST) -> Bars:
    """Where there are more classes than `most`, the most frequent ones are shown."""
    total, largest = sum(counts.values()) or 1, max(counts.values(), default=0)
    shown = counts if len(counts) <= most else dict(sorted(counts.items(), key=lambda one: -one[1])[:most])
    bars = [Bar(label, n, round(100 * n / (largest or 1), 1), round(100 * n / total, 1)) for label, n in shown.items()]
    return Bars(bars, len(counts), min(counts.values(), default=0), largest)


def _with_faults(version: DatasetVersion, found: FolderPage) -> list[tuple[FolderEntry, str]]:
    """The entries, with what was found to be wrong with those that are files."""
    files = selectors.files_at(version, [one.path for one in found.rows if not one.is_folder])
    return [(one, files[one.path].fault if one.path in files else "") for one in found.rows]


WORDS = pages.Words(
    title="Datasets", noun="dataset", icon="database", command="yardmaster datasets",
    launch_key="dataset_version", list_page="datasets_page", page="dataset_page", upload_page="dataset_upload_page",
    edit_page="dataset_edit_page", delete_page="dataset_delete_page", api="datasets",
)  # fmt: skip
FILES_SHOWN = 50
PICTURES_SHOWN = 24
LARGEST_PICTURE = 1 << 20
PATHS_SHOWN = 500
LARGEST_ARCHIVE = 4 << 30
_PREVIEW_PATIENCE = 0.4
_CHECK_PATIENCE = 1.5
_COMPARE_PATIENCE = 1.0
_PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp")


class DatasetPage(pages.CollectionPage):
    """A dataset at one of its versions. `?path=` is looked into, `?find=` filters, `?view=pictures` shows them. The
    files of a large version are shown by folder (`?folder=`), and in one list with `?view=list`."""

    store = DATASETS
    words = WORDS
    template = "datasets/dataset.html"

    def content(self, item: Collection, version: Version | None) -> dict[str, Any]:
        if version is None:
            return {}
        version = cast(DatasetVersion, version)
        pictures = self.request.GET.get("view") == "pictures"
        find = self.request.GET.get("find", "")[:512]
        size = PICTURES_SHOWN if pictures else FILES_SHOWN
        wanted = _wanted(find, pictures) if find or pictures else None
        page = files_page(version, self.request.GET.get("cursor", ""), size, wanted)
        is_listed = self.request.GET.get("view") == "list" or "cursor" in self.request.GET
        folders = None if find or pictures or is_listed else self._folders(version)
        if is_registered(version) and (bucket := bucket_of(version.parent)) is not None:
            self.request.META[PICTURES_FROM] = bucket.endpoint
        file = self._file(version, page.rows)
        described = description_of(version, file.path if file else "")
        return {
            "find": find,
            "folders": folders,
            "entries": _with_faults(version, folders) if folders else [],
            "above": _folders_above(folders.folder) if folders else [],
            "is_listed": is_listed,
            "is_registered": is_registered(version),
            "page": page,
            "searched": MOST_SEARCHED,
            "pictures": [(file, picture_address(version, file)) for file in page.rows] if pictures else None,
            "has_pictures": any(content_type_of(file.path).startswith("image/") for file in page.rows),
            "may_archive": version.size <= LARGEST_ARCHIVE,
            "is_large": version.size > LARGE_ARCHIVE,
            **self._described(described),
            **self._preview(version, file, described),
        }

    def _folders(self, version: DatasetVersion) -> FolderPage | None:
        """What lies in the folder that is shown. None: one list is as good, of few files or without folders."""
        folder, behind = self.request.GET.get("folder", "")[:512], self.request.GET.get("behind", "")
        if version.file_count <= FILES_SHOWN and not folder:
            return None
        found = folder_page(version, folder, behind, FILES_SHOWN)
        return found if folder or behind or any(one.is_folder for one in found.rows) else None

    def _described(self, described: Described | None) -> dict[str, Any]:
        """What preparation has written down about the whole version."""
        if described is None or described.problem:
            return {"described": described}
        return {"described": described, "class_bars": bars_of(described.tables["classes"], MOST)}

    def _file(self, version: DatasetVersion, rows: Sequence[ListedFile]) -> ListedFile | None:
        """The file to look into."""
        wanted = self.request.GET.get("path", "")
        return selectors.file_for(version, wanted) if wanted else self._first_shard(version) or _telling(rows)

    def _preview(self, version: DatasetVersion, file: ListedFile | None, described: Described | None) -> dict[str, Any]:
        if file is None:
            return {}
        try:
            preview = preview_file(version, file, described=described, patience=_PREVIEW_PATIENCE)
        except ObjectMissing:
            return {"file": file, "gone": True}
        except (DomainError, YardmasterError) as error:
            if not is_registered(version):
                raise
            return {"file": file, "unreadable": f"The bucket cannot be read. {error}"}
        return {"file": file, "preview": preview, "url": pages.here(preview.url), "bars": _bars(preview)}

    def _first_shard(self, version: DatasetVersion) -> ListedFile | None:
        """Of a prepared dataset: its first records are what is to be seen."""
        if version.source_job is None:
            return None
        found = selectors.files_in(version)
        return next((one for one in islice(found, MOST) if ".tfrecord" in one.path), None)


class DatasetChangesPage(pages.VersionStorePage):
    """Which files a version added, changed and removed, against the one before or `?since=`."""

    store = DATASETS
    words = WORDS

    def get(self, request: HttpRequest, collection_id: UUID) -> HttpResponse:
        item = cast(Dataset, self.collection(collection_id))
        pair = self.pair(item, "version", "since")
        before, version = cast(tuple[DatasetVersion | None, DatasetVersion | None], pair)
        context = {
            "item": item,
            "version": version,
            "before": before,
            **(self._compared(before, version) if version else {}),
            "most": PATHS_SHOWN,
            "versions": list(selectors.versions_of(DATASETS, item).order_by("-number")[:100]),
            "breadcrumbs": self.way_to(item),
        }
        part = bool(request.headers.get("HX-Request")) and "behind" in request.GET
        return self.show("datasets/changes_step.html" if part else "datasets/changes.html", context)

    def _compared(self, before: DatasetVersion | None, version: DatasetVersion) -> dict[str, Any]:
        """What was found in about a second; and where the next request continues, with the counts so far."""
        names = ("added", "changed", "removed", "looked")
        so_far = {name: pages.number_of(self.request, name) for name in names}
        found = lists_compare(
            before.upload_id if before else None, version.upload_id, behind=self.request.GET.get("behind", "")[:512],
            most=PATHS_SHOWN, patience=_COMPARE_PATIENCE,
        )  # fmt: skip
        total = {name: so_far[name] + count for name, count in found.changes.counts.items()}
        looked = min(version.file_count, so_far["looked"] + found.looked_at)
        following = ""
        if found.next is not None:
            since = f"&since={before.number}" if before else ""
            counts = "".join(f"&{name}={count}" for name, count in total.items())
            following = f"?version={version.number}{since}{counts}&looked={looked}&behind={quote(found.next)}"
        return {
            "changes": found.changes, "total": total, "looked": looked, "following": following,
            "is_part": bool(following or so_far["looked"]), "is_same": not (following or any(total.values())),
        }  # fmt: skip


class DatasetCheckPage(pages.VersionStorePage):
    """Reads files again and compares their checksums, for a second or two per request; the page continues by itself."""

    store = DATASETS
    words = WORDS

    def get(self, request: HttpRequest, version_id: UUID) -> HttpResponse:
        version = cast(DatasetVersion, self.version(version_id))
        names = ("files", "size", "faults", "unread")
        files, size, faults, unread = (pages.number_of(request, name) for name in names)
        after = request.GET.get("after", "")
        result = None
        if "go" in request.GET:
            result = version_check(version, after=after, patience=_CHECK_PATIENCE)
            files, size, faults = files + result.checked, size + result.bytes, faults + len(result.corrupt)
            unread += len(result.unread)
        so_far = f"go=1&files={files}&size={size}&faults={faults}&unread={unread}"
        following = f"?{so_far}&after={quote(result.next)}" if result and result.next is not None else ""
        context = {
            "item": version.parent,
            "version": version,
            "result": result,
            "following": following,
            "files": files,
            "size": size,
            "faults": faults,
            "unread": unread,
            "breadcrumbs": self.way_to(version.parent),
        }
        part = bool(request.headers.get("HX-Request"))
        return self.show("datasets/check_step.html" if part else "datasets/check.html", context)


def picture_address(version: DatasetVersion, file: ListedFile) -> str:
    """Where a picture may be loaded from, for some minutes; empty for one too large to be shown small."""
    if file.size > LARGEST_PICTURE:
        return ""
    try:
        return pages.here(selectors.download_url(version, file.path, content_type=content_type_of(file.path)))
    except (DomainError, YardmasterError):
        if is_registered(version):
            return ""
        raise


def is_registered(version: DatasetVersion) -> bool:
    """Whether its files lie in a bucket of others."""
    return version.key_prefix.startswith(PREFIX)


def _wanted(find: str, pictures: bool) -> Callable[[ListedFile], bool]:
    """What belongs on the page: pictures alone, or what has this in its path, in any case."""
    find = find.lower()

    def is_wanted(file: ListedFile) -> bool:
        path = file.path.lower()
        return find in path and (not pictures or path.endswith(_PICTURES))

    return is_wanted


def _telling(rows: Sequence[ListedFile]) -> ListedFile | None:
    """The file to look into where none was chosen: the one with the most records, else the first."""
    return max(rows, key=lambda file: 0 if file.fault else file.records or 0, default=None)


def _bars(preview: Preview) -> Any:
    return bars_of(preview.labels.counts) if preview.labels else None


def _folders_above(folder: str) -> list[tuple[str, str]]:
    """Name and path of each folder down to this one."""
    names = folder.split("/") if folder else []
    return [(name, "/".join(names[: at + 1])) for at, name in enumerate(names)]


class DatasetsPage(pages.ListPage):
    store = DATASETS
    words = WORDS


class DatasetUploadPage(pages.UploadPage):
    store = DATASETS
    words = WORDS


class DatasetEditPage(pages.EditPage):
    store = DATASETS
    words = WORDS


class DatasetDeletePage(pages.DeletePage):
    store = DATASETS
    words = WORDS


class DatasetVersionAddress(pages.VersionAddress):
    store = DATASETS
    words = WORDS


pages_urlpatterns: list[URLPattern | URLResolver] = [
    path("datasets/", DatasetsPage.as_view(), name="datasets_page"),
    path("datasets/upload/", DatasetUploadPage.as_view(), name="dataset_upload_page"),
    path("datasets/<uuid:collection_id>/", DatasetPage.as_view(), name="dataset_page"),
    path("datasets/<uuid:collection_id>/upload/", DatasetUploadPage.as_view(), name="dataset_upload_page"),
    path("datasets/<uuid:collection_id>/edit/", DatasetEditPage.as_view(), name="dataset_edit_page"),
    path("datasets/<uuid:collection_id>/delete/", DatasetDeletePage.as_view(), name="dataset_delete_page"),
    path("datasets/<uuid:collection_id>/changes/", DatasetChangesPage.as_view(), name="dataset_changes_page"),
    path("datasets/versions/<uuid:version_id>/", DatasetVersionAddress.as_view(), name="dataset_version_page"),
    path("datasets/versions/<uuid:version_id>/check/", DatasetCheckPage.as_view(), name="dataset_check_page"),
]
