"""`python -m yardmaster_runner.prepare`: the preparation. Exits 1 with one line where it cannot continue."""

from __future__ import annotations

import argparse
import os
import re
import sys
from typing import List, Optional

from yardmaster_runner.prepare.folder import ENDINGS
from yardmaster_runner.prepare.trouble import BadRecord, PrepareError
from yardmaster_runner.prepare.work import Options, Work, merge, part_path

UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9}


def size(text: str) -> int:
    """ "150M" as bytes."""
    found = re.match(r"^([1-9][0-9]{0,11})([KMG]?)$", text)
    if not found:
        raise argparse.ArgumentTypeError("%r: expected a size such as 150M" % text)
    return int(found.group(1)) * UNITS[found.group(2)]


def count(text: str) -> int:
    """A whole number from 1."""
    if not re.match(r"^[1-9][0-9]{0,8}$", text):
        raise argparse.ArgumentTypeError("%r: expected a whole number from 1" % text)
    return int(text)


def parser() -> argparse.ArgumentParser:
    out = argparse.ArgumentParser(prog="python -m yardmaster_runner.prepare", description=__doc__)
    out.add_argument("--input", required=True)
    out.add_argument("--output", required=True)
    out.add_argument("--format", choices=["auto", *ENDINGS], default="auto")
    out.add_argument("--shard-bytes", type=size, default=150_000_000, help="size of a shard before compression")
    out.add_argument("--records-per-shard", type=count, default=0)
    out.add_argument("--compression", choices=["gzip", "none"], default="none")
    out.add_argument("--split", default="90/10", help="train/validation[/test] in percent")
    out.add_argument("--seed", type=int, default=1)
    out.add_argument("--label", default="", help="column of the label (csv, jsonl)")
    out.add_argument("--worker", type=int, default=0)
    out.add_argument("--workers", type=count, default=1)
    out.add_argument("--step", default="", help="Python file with map_record(record)")
    out.add_argument("--on-bad-record", choices=["fail", "skip"], default="fail")
    out.add_argument("--merge", action="store_true", help="only write dataset.json from the results of all workers")
    return out


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main(arguments: Optional[List[str]] = None) -> int:
    """With one worker dataset.json is written too; with several, `--merge` writes it when all have ended."""
    known = parser()
    members = vars(known.parse_args(arguments))
    only_merge = members.pop("merge")
    members["compression"] = "GZIP" if members["compression"] == "gzip" else ""
    options = Options(**members)
    if not 0 <= options.worker < options.workers:
        known.error("worker is %d: expected 0 to %d" % (options.worker, options.workers - 1))
    try:
        os.makedirs(options.output, exist_ok=True)
        if not only_merge:
            if os.path.exists(part_path(options.output, options.worker)):
                raise PrepareError("%s has the result of an earlier run: choose an empty folder" % options.output)
            Work(options, say).run()
        if only_merge or options.workers == 1:
            total, bad, empty = merge(options.output, options.workers)
            say("%d records, %d skipped" % (total, bad))
            for name in empty:
                say("warning: no record is in %s, which was asked for: too few files or rows" % name)
    except (PrepareError, BadRecord, OSError) as error:
        sys.stderr.write("%s\n" % error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
