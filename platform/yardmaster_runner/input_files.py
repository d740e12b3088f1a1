"""Which files of an input lie in the task's folder before the script starts: all, all but the shards that are streamed,
or, of an input whose shards are divided, the task's own shards and everything that is no shard. What is left out can be
asked for while the script runs (`data_service`). A program of the portal may name its files instead (`program_inputs`).

The portal gives the files by page and in one order, so the list is read once.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Callable, Container, Dict, List, Optional, Tuple

from yardmaster_runner import program_inputs
from yardmaster_runner.data.description import FILE_NAME, LARGEST, BadDescription, Description, from_text, is_shard
from yardmaster_runner.order import Bundle, Order, RemoteFile
from yardmaster_runner.stage import Stager, just_before


def place(
    stager: Stager, order: Order, bundle: Bundle, folder: str, who: Tuple[str, int],
    needed: Optional[Container[str]] = None,
) -> Optional[Bundle]:  # fmt: skip
    """Put in place what belongs there before the start. Returns the input with all of its files where some of them are
    left for the script to ask for; None where no more will be wanted. `who`: the task's role and index; `needed`: the
    paths below the data folder that the task's program reads, where it says so."""
    if needed is not None:
        top = program_inputs.folder_of(bundle)
        stager.place(bundle, folder, is_copied=False, wanted=lambda file: top + file.path in needed)
        return None
    is_placed = _placed_of(stager, order, bundle, folder, who)
    if is_placed is None:
        stager.place(bundle, folder, is_copied=False)
        return None
    seen: List[RemoteFile] = []

    def wanted(file: RemoteFile) -> bool:
        seen.append(file)
        return is_placed(file)

    stager.place(bundle, folder, is_copied=False, wanted=wanted)
    return replace(bundle, files=tuple(seen))


def _placed_of(
    stager: Stager, order: Order, bundle: Bundle, folder: str, who: Tuple[str, int]
) -> Optional[Callable[[RemoteFile], bool]]:
    """Which files are put in place; None: all."""
    role, index = who
    if bundle.is_streamed or (bundle.is_divided and role == "ps"):  # a parameter server reads nothing
        return lambda file: not is_shard(file.path)
    part = order.part_of(role, index) if bundle.is_divided else None
    if part is None or part[1] == 1:
        return None
    return own_shards(_description(stager, bundle, folder), part)


def own_shards(description: Optional[Description], part: Tuple[int, int]) -> Callable[[RemoteFile], bool]:
    """Whether a file is no shard, or one of this part's. Each split is divided as `yardmaster_runner.data` divides it;
    shards of no split are divided in the order in which they are asked about."""
    index, count = part
    is_own: Dict[str, bool] = {}
    for shards in description.splits.values() if description is not None else ():
        for number, one in enumerate(shards):
            is_own[one.path] = is_own.get(one.path, False) or number % count == index
    others = [0]

    def wanted(file: RemoteFile) -> bool:
        if file.path in is_own:
            return is_own[file.path]
        if not is_shard(file.path):
            return True
        others[0] += 1
        return (others[0] - 1) % count == index

    return wanted


def _description(stager: Stager, bundle: Bundle, folder: str) -> Optional[Description]:
    """What the input says of its splits; None where it says nothing that can be read, which the reader then reports."""
    file = _found(bundle.files)
    if file is None and bundle.next:
        file = _found(stager.page_behind(bundle, just_before(FILE_NAME)))
    if file is None or file.size > LARGEST:
        return None
    stager.place(replace(bundle, files=(file,), next=""), folder, is_copied=False)
    try:
        with open(os.path.join(folder, FILE_NAME), encoding="utf-8") as text:
            return from_text(text.read())
    except (UnicodeDecodeError, BadDescription):
        return None


def _found(files: Tuple[RemoteFile, ...]) -> Optional[RemoteFile]:
    return next((one for one in files if one.path == FILE_NAME), None)
