"""The command behind `make fuzz`: the test with many examples, in as many processes as there are processors, and the
table of what was answered. It fails where a request broke the portal, and where fewer than 10,000 were sent."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.fuzz.tally import KEPT, counts_in, report, total

LEAST = 10_000
EXAMPLES = 36
"""For each of 300 operations. Some have fewer different requests than that."""
TEST = "tests/integration/api/test_api_survives_anything.py"


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="make fuzz")
    parser.add_argument("only", nargs="*", help="parts of addresses, such as jobs: the others are left out")
    parser.add_argument("--examples", type=int, default=EXAMPLES, help="requests for each operation")
    parser.add_argument("--postgres", action="store_true", help="on a PostgreSQL of its own instead of SQLite")
    options = parser.parse_args(words)
    with tempfile.TemporaryDirectory(prefix="yardmaster-fuzz-") as folder:
        told = {"YARDMASTER_TEST_EXAMPLES": str(options.examples), KEPT: folder}
        if options.postgres:
            told["YARDMASTER_TEST_FUZZ_POSTGRES"] = "1"
        only = ["-k", " or ".join(f"/{one}/" for one in options.only)] if options.only else []
        processes = ["-n", str(os.cpu_count()), "--dist", "load"] if (os.cpu_count() or 1) > 1 else []
        command = [sys.executable, "-m", "pytest", "-q", TEST, *processes, *only]
        failed = subprocess.run(command, env=os.environ | told, check=False).returncode
        counts = counts_in(Path(folder))
    print(report(counts))
    if not options.only and total(counts) < LEAST:
        print(f"These are fewer than {LEAST}: give more with EXAMPLES=.")
        return failed or 1
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
