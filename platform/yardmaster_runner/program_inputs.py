"""What of its inputs a task needs that prepares data: the part that it reads, where a preparation has several workers.

All workers have to agree on the parts, and classes and splits are those of all files. So the list of all files is
written into the work folder, where the program finds it in the place of the files.
"""

from __future__ import annotations

from typing import Any, Callable, Iterable, Iterator, Mapping, Sequence, Set

from yardmaster_runner.order import Bundle, Order, RemoteFile
from yardmaster_runner.prepare import folder, layout
from yardmaster_runner.prepare.files import File
from yardmaster_runner.prepare.trouble import PrepareError

PREPARE = "prepare"


def folder_of(bundle: Bundle) -> str:
    """What stands before the paths of an input, below the data folder."""
    return bundle.name + "/" if bundle.name else ""


def listed(
    order: Order, pages: Callable[[Bundle], Iterable[Sequence[RemoteFile]]], place: Callable[[str], str]
) -> Iterator[File]:
    """The files of all inputs; of a page at a time there is more than path and size. What is read on a volume is listed
    there: `place` gives the folder of an input, by its name."""
    for bundle in order.inputs:
        if bundle.is_on_volume:
            for file in folder.list_files(place(bundle.name)):
                yield File(folder_of(bundle) + file.path, file.size)
            continue
        for page in pages(bundle):
            for one in page:
                yield File(folder_of(bundle) + one.path, one.size)


def needed(options: Mapping[str, Any], files: Iterable[File], where: str, task: int, tasks: int) -> Set[str]:
    """The paths that a task reads, once the list of all files is written to `where`. With a step files of other formats
    come too: it may read them."""
    folder.write_list(where, files)
    known = folder.read_list(where)
    try:
        skip = options.get("on_bad_record") == "skip"
        chosen = layout.choose(known, str(options.get("format") or "auto"), skip)
    except PrepareError:
        return set()  # the program says what is wrong
    mine = folder.share_of(chosen.files, chosen.form, tasks, task)
    found = {one.path for one in mine}
    if options.get("step"):
        found |= {one.path for one in known} - {one.path for one in chosen.files}
    return found
