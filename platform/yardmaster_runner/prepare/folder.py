"""What a folder holds: its format, the split of a file or row, and which worker takes which file. Pure, except for
`list_files`."""

from __future__ import annotations

import hashlib
import json
import os
from typing import Dict, Iterable, Iterator, List, Sequence, Set, Tuple

from yardmaster_runner.prepare.files import File, Files, assign, in_order, path_of, select
from yardmaster_runner.prepare.trouble import PrepareError

ENDINGS = {
    "images": (".jpg", ".jpeg", ".png", ".gif", ".bmp"),
    "csv": (".csv", ".tsv", ".csv.gz", ".tsv.gz"),
    "jsonl": (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz"),
    "text": (".txt",),
    "numpy": (".npy",),
}
REMEDIES = {
    (".npz",): "save each array of an .npz as .npy",
    (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar.zst"): "upload archives with --unpack",
    (".json",): "write .json as .jsonl, with one object per line",
    (".parquet", ".xlsx", ".xls"): "export tables of other programs as .csv",
    (".webp", ".tif", ".tiff", ".heic"): "convert other pictures to .png or .jpg",
}
"""What to do with files that cannot be prepared."""
SPLITS = ("train", "validation", "test")
MOST_FILES = 5_000_000
FEW_FILES = 10
"""With fewer tables or arrays than this, rows are split instead of files."""


def list_files(top: str) -> Files:
    """All regular files below `top`, sorted. Links and hidden names are passed over."""
    return in_order(_bounded(_walk(top)))


def _walk(top: str) -> Iterator[File]:
    pending = [""]
    while pending:
        below = pending.pop()
        with os.scandir(os.path.join(top, below)) as entries:
            for entry in entries:
                path = below + "/" + entry.name if below else entry.name
                if entry.name.startswith("."):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    pending.append(path)
                elif entry.is_file(follow_symlinks=False):
                    yield File(path, entry.stat(follow_symlinks=False).st_size)


def _bounded(found: Iterable[File]) -> Iterator[File]:
    for count, one in enumerate(found):
        if count == MOST_FILES:
            raise PrepareError("the input has more than %d files: pack them first" % MOST_FILES)
        yield one


def write_list(path: str, files: Iterable[File]) -> None:
    """Files as lines of a text, for a worker that does not have all of them. Paths with a hidden part are left out."""
    with open(path, "w", encoding="utf-8", errors="surrogateescape") as out:
        for one in files:
            if not any(part.startswith(".") for part in one.path.split("/")):
                out.write(json.dumps([one.path, one.size]) + "\n")


def read_list(path: str) -> Files:
    """What `write_list` wrote, sorted."""
    with open(path, encoding="utf-8") as lines:
        return in_order(_bounded(File(*json.loads(line)) for line in lines))


def of_format(files: Sequence[File], wanted: str) -> Tuple[str, Sequence[File]]:
    """The format and its files. "auto" takes the format with most files. Raises `PrepareError` where there is none."""
    counts: Dict[str, int] = dict.fromkeys(ENDINGS, 0)
    for one in files:
        for name in counts:
            counts[name] += is_of(one, name)
    chosen = max(counts, key=lambda name: counts[name]) if wanted == "auto" else wanted
    if not counts[chosen]:
        known = ", ".join(ending for name, endings in ENDINGS.items() if wanted in ("auto", name) for ending in endings)
        raise PrepareError("the input has no file that ends in one of %s%s" % (known, remedies_for(files)))
    return chosen, select(files, lambda one: is_of(one, chosen))


def is_of(file: File, form: str) -> bool:
    """Whether its name is that of a file of this format."""
    return file.path.lower().endswith(ENDINGS[form])


def remedies_for(files: Iterable[File]) -> str:
    """What to do with those that are of no format, behind a colon; "" where nothing is known."""
    paths = [one.path.lower() for one in files]
    found = [words for endings, words in REMEDIES.items() if any(path.endswith(endings) for path in paths)]
    return ": " + "; ".join(found) if found else ""


def shares(text: str) -> Tuple[float, ...]:
    """ "90/10" or "80/10/10" as parts of 1. Raises `PrepareError`."""
    try:
        parts = [float(one) for one in text.split("/")]
    except ValueError:
        parts = []
    if len(parts) not in (2, 3) or not all(0 <= one <= 100 for one in parts) or abs(sum(parts) - 100) > 1e-6:
        raise PrepareError("split is %r: expected parts that add up to 100, such as 90/10 or 80/10/10" % text)
    return tuple(one / 100 for one in parts)


def split_of(key: str, seed: int, parts: Sequence[float]) -> str:
    """The split of a file or row. It depends on its own key only: what is added later moves nothing."""
    return _split_at(digest_of(key, seed), parts)


def digest_of(key: str, seed: int) -> bytes:
    return hashlib.sha256(("%d\n%s" % (seed, key)).encode("utf-8", "surrogateescape")).digest()


def splits_of_rows(path: str, numbers: Sequence[int], seed: int, parts: Sequence[float]) -> Dict[str, List[int]]:
    """By split, which of these rows of a file are in it, counted from 0: what `split_of` says of "path, row N"."""
    out: Dict[str, List[int]] = {}
    begun = hashlib.sha256(("%d\n%s, row " % (seed, path)).encode("utf-8", "surrogateescape"))
    for at, number in enumerate(numbers):
        digest = begun.copy()
        digest.update(b"%d" % number)
        out.setdefault(_split_at(digest.digest(), parts), []).append(at)
    return out


def _split_at(digest: bytes, parts: Sequence[float]) -> str:
    at = int.from_bytes(digest[:8], "big") / 2**64
    for name, part in zip(SPLITS, parts):
        if at < part:
            return name
        at -= part
    return SPLITS[max(number for number, part in enumerate(parts) if part)]


def partner(path: str) -> str:
    """The file of labels of a file: y.npy of x.npy, a_y.npy of a_x.npy, y_a.npy of x_a.npy; "" for other names. Beside
    a large X stands a small y."""
    folder, slash, name = path.rpartition("/")
    stem = name[: -len(".npy")]
    if stem in ("x", "X") or stem.endswith(("_x", "_X")):
        return folder + slash + stem[:-1] + "y.npy"
    return folder + slash + "y" + stem[1:] + ".npy" if stem.startswith(("x_", "X_")) else ""


def partners(files: Sequence[File]) -> Set[str]:
    """Of arrays, the paths of those that are the labels of others."""
    wanted = {partner(one.path) for one in files} - {""}
    return {one.path for one in files if one.path in wanted} if wanted else set()


def are_cut(form: str, files: Sequence[File]) -> bool:
    """Whether the files of a format are cut between workers, each of which then reads all of them: tables, whose rows
    are found by reading, and arrays that are too few to be divided."""
    if form == "numpy":
        return len(files) - len(partners(files)) < FEW_FILES
    return form in ("csv", "jsonl")


def share_of(files: Sequence[File], form: str, workers: int, worker: int) -> Sequence[File]:
    """The files of a format that a worker needs, sorted: all that are cut, or its part of the others."""
    if workers == 1 or are_cut(form, files):
        return files
    labels = partners(files) if form == "numpy" else set()
    mine = assign(select(files, lambda one: one.path not in labels), workers)[worker]
    paths = {partner(one.path) for one in mine} & labels
    return sorted([*mine, *(one for one in files if one.path in paths)], key=path_of) if paths else mine
