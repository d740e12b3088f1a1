"""What an entry point is, by how it is written. Pure, and the portal's rule as well: one home for one rule.

A path that ends in `.py` is a script, one that ends in `.ipynb` a notebook, and `-m package.train` a module.
"""

from __future__ import annotations

import re
from typing import Optional, Tuple

_MODULE = re.compile(r"-m[ \t]+(\S+)")


def module_of(entry_point: str) -> Optional[str]:
    """The dotted name of the module; None where the entry point is no module."""
    found = _MODULE.fullmatch(entry_point)
    return found.group(1) if found and all(map(str.isidentifier, found.group(1).split("."))) else None


def is_notebook(entry_point: str) -> bool:
    return entry_point.endswith(".ipynb")


def files_of_module(module: str) -> Tuple[str, str]:
    """The files of which `python -m` runs one: that of a package, and that of a plain module."""
    path = module.replace(".", "/")
    return path + "/__main__.py", path + ".py"
