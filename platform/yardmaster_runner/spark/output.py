"""Which files of an output folder are data: Spark's writers leave others beside them."""

from __future__ import annotations

MARK = "_SUCCESS"
CHECKSUM = ".crc"
UNFINISHED = "_temporary"


def is_data(path: str) -> bool:
    """Whether this file, by its path with `/` below the output folder, is none of Spark's own: a mark that a table is
    complete, a checksum beside a file, or what an attempt that failed has written."""
    folders, _, name = path.rpartition("/")
    is_checksum = name.startswith(".") and name.endswith(CHECKSUM)
    return not (name == MARK or is_checksum or UNFINISHED in folders.split("/"))
