"""`python -m yardmaster_runner.pack OUT`: the runner as one file, which `python OUT` runs with nothing installed.

The same sources give the same bytes, so that an image or a checksum changes only when the runner does.
"""

from __future__ import annotations

import argparse
import os
import pkgutil
import sys
import zipfile
from typing import List, Optional

import yardmaster_runner

MAIN = "import sys\nfrom yardmaster_runner.__main__ import main\nsys.exit(main())\n"
LONG_AGO = (1980, 1, 1, 0, 0, 0)


def pack(target: str) -> None:
    """Write the archive to `target`, whole or not at all."""
    temporary = target + ".new"
    with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
        _add(archive, "__main__.py", MAIN.encode())
        for name in ["__init__", *sorted(module.name for module in pkgutil.iter_modules(yardmaster_runner.__path__))]:
            path = "yardmaster_runner/%s.py" % name
            _add(archive, path, _source(name))
    os.replace(temporary, target)


def _add(archive: zipfile.ZipFile, path: str, content: bytes) -> None:
    entry = zipfile.ZipInfo(path, LONG_AGO)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    archive.writestr(entry, content)


def _source(name: str) -> bytes:
    """Through the loader, so that an archive can pack itself again."""
    content = pkgutil.get_data("yardmaster_runner", name + ".py")
    if content is None:
        raise FileNotFoundError("the source of yardmaster_runner.%s" % name)
    return content


def main(arguments: Optional[List[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m yardmaster_runner.pack", description=__doc__.split("\n")[0])
    parser.add_argument("out", help="the archive to write, such as yardmaster_runner.pyz")
    pack(parser.parse_args(arguments).out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
