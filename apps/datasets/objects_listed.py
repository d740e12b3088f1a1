"""Which objects of a registered bucket can be files of a version, and why the others cannot."""

from __future__ import annotations

from itertools import islice

from apps.datasets.integrity import ETAG
from yardmaster.storage.base import MAX_OBJECT_SIZE, ObjectStat
from yardmaster.storage.file_list import ListedFile
from yardmaster.storage.paths import folders_of, path_fault
from yardmaster.storage.s3 import S3Storage

NAME_SHOWN = 200
_LOOKED_AT = 5_000
"""Objects in which one is looked for that is no folder."""


def sorted_out(
    found: list[ObjectStat], store: S3Storage, *, is_cut: bool
) -> tuple[list[ListedFile], list[dict[str, str]]]:
    """Those of the objects that can be files, and the others with the reason. `is_cut`: more may follow them."""
    files: list[ListedFile] = []
    left_out: list[dict[str, str]] = []
    last = found[-1].key if is_cut else ""
    found = [one for one in found if not _is_a_folder(one)]
    folders = {folder for one in found for folder in folders_of(one.key)}
    for one in found:
        fault = path_fault(one.key)
        reason = fault[1] if fault else ""
        if not reason and (one.key in folders or _is_a_folder_behind(one.key, last, store)):
            reason = "is also a folder of other objects"
        if not reason and one.size > MAX_OBJECT_SIZE:
            reason = f"has {one.size:,} bytes; at most {MAX_OBJECT_SIZE:,} are allowed"
        if reason:
            left_out.append({"path": one.key[:NAME_SHOWN], "reason": reason})
        else:
            files.append(ListedFile(one.key, one.size, sha256=ETAG + one.etag.strip('"')))
    return files, left_out


def _is_a_folder_behind(path: str, last: str, store: S3Storage) -> bool:
    """Whether objects lie below this one behind the last one that is listed: then only such lie between the two whose
    keys begin with its own. Asks for that of few objects."""
    folder = path + "/"
    if not last.startswith(path) or last > folder:
        return False
    behind = (one for one in islice(store.everything(folder), _LOOKED_AT) if not _is_a_folder(one))
    following = next(behind, None)
    return following is not None and following.key.startswith(folder)


def _is_a_folder(one: ObjectStat) -> bool:
    """Whether it is an empty object that some tools make for a folder."""
    return not one.key or one.key.endswith("/")
