"""`python -m yardmaster_runner.pack OUT`: the runner as one file, which `python OUT` runs with nothing installed.

The same sources give the same bytes, so that an image or a checksum changes only when the runner does.
"""

from __future__ import annotations

import argparse
import os
import pkgutil
import sys
import zipfile
from typing import Iterator, List, Optional

import yardmaster_runner

MAIN = "import sys\nfrom yardmaster_runner.__main__ import main\nsys.exit(main())\n"
LONG_AGO = (1980, 1, 1, 0, 0, 0)


def pack(target: str) -> None:
    """Write the archive to `target`, whole or not at all."""
    temporary = target + ".new"
    with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
        _add(archive, "__main__.py", MAIN.encode())
        for path in ["__init__.py", *sorted(_modules())]:
            _add(archive, "yardmaster_runner/" + path, _source(path))
    os.replace(temporary, target)


def _add(archive: zipfile.ZipFile, path: str, content: bytes) -> None:
    entry = zipfile.ZipInfo(path, LONG_AGO)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    archive.writestr(entry, content)


def _modules() -> Iterator[str]:
    """The paths of all modules, also of those in packages below this one."""
    for module in pkgutil.walk_packages(yardmaster_runner.__path__, "yardmaster_runner."):
        path = module.name.partition(".")[2].replace(".", "/")
        yield path + ("/__init__.py" if module.ispkg else ".py")


def _source(path: str) -> bytes:
    """Through the loader, so that an archive can pack itself again."""
    content = pkgutil.get_data("yardmaster_runner", path)
    if content is None:
        raise FileNotFoundError("the source of yardmaster_runner/%s" % path)
    return content


def main(arguments: Optional[List[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m yardmaster_runner.pack", description=__doc__.split("\n")[0])
    parser.add_argument("out", help="the archive to write, such as yardmaster_runner.pyz")
    pack(parser.parse_args(arguments).out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
