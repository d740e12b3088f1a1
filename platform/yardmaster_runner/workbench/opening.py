"""`yardmaster/open` of a JupyterLab: a notebook that opens a version of code, data or a model, made when it is first
asked for. What is there, the user's, is not written again.

An extension of Jupyter's server, which imports this module by its name. The versions themselves are fetched by the
notebook's cells, with the SDK and the rights of its user. It also puts the script of `notice_tag` into
JupyterLab's pages.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import uuid
from typing import Any, Dict, List
from urllib.parse import quote

from yardmaster_runner.workbench import notice_tag

FOLDER = "From the portal"
PATH = "yardmaster/open"
LONGEST_NAME = 100
_LOCAL = """\
folder = portal.{kind}s.local({version!r})  # fetched once; do not write into it
sorted(str(one.relative_to(folder)) for one in folder.rglob("*") if one.is_file())[:50]"""
_CODE = """\
from pathlib import Path

folder = Path({name!r})  # beside this notebook, to work in
if not folder.exists():
    portal.code.open({version!r}, folder)
# portal.code.save(folder, {item!r}, note="what is new")  # makes a new version of what is in it
sorted(str(one.relative_to(folder)) for one in folder.rglob("*") if one.is_file())[:50]"""
CELLS = {"dataset": _LOCAL, "model": _LOCAL, "code": _CODE}
SIGN_IN = "from yardmaster_client import Yardmaster\n\nportal = Yardmaster.from_environment()"


def notebook_for(home: str, kind: str, version: str, name: str) -> str:
    """The path, in the home, of the notebook for this version, which is made where it is not there. `name` is what
    people call the version (`digits@2`). Raises `ValueError` for what is no version, and `OSError`."""
    if kind not in CELLS:
        raise ValueError("kind is %r; it must be one of %s" % (kind, ", ".join(CELLS)))
    version = str(uuid.UUID(version))
    name = re.sub(r"[^\w.@ -]", "-", name)[:LONGEST_NAME].strip(". ") or version
    os.makedirs(os.path.join(home, FOLDER), exist_ok=True)
    for title in ("%s %s" % (kind, name), "%s %s %s" % (kind, name, version)):
        path = "%s/%s.ipynb" % (FOLDER, title)
        try:
            with open(os.path.join(home, path), "x", encoding="utf-8") as file:
                json.dump(_notebook(kind, version, name), file, indent=1)
        except FileExistsError:
            if not _mentions(os.path.join(home, path), version):
                continue  # of an earlier version of this name, which was deleted
        break
    return path


def _mentions(path: str, version: str) -> bool:
    with open(path, encoding="utf-8", errors="replace") as file:
        return version in file.read()


def _notebook(kind: str, version: str, name: str) -> Dict[str, Any]:
    cell = CELLS[kind].format(kind=kind, version=version, name=name, item=name.rpartition("@")[0] or name)
    return {
        "cells": [_cell("markdown", "# The %s %s" % (kind, name)), _cell("code", SIGN_IN), _cell("code", cell)],
        "metadata": {"kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def _cell(kind: str, source: str) -> Dict[str, Any]:
    of_code: Dict[str, Any] = {"execution_count": None, "outputs": []} if kind == "code" else {}
    return {"cell_type": kind, "id": uuid.uuid4().hex[:8], "metadata": {}, "source": source, **of_code}


def _jupyter_server_extension_points() -> List[Dict[str, str]]:
    return [{"module": __name__}]


def _load_jupyter_server_extension(server: Any) -> None:
    """Called by Jupyter's server."""
    web = importlib.import_module("tornado.web")
    base = importlib.import_module("jupyter_server.base.handlers").JupyterHandler

    def get(handler: Any) -> None:
        wanted = [handler.get_query_argument(one, "") for one in ("kind", "version", "name")]
        try:
            path = notebook_for(server.root_dir, *wanted)
        except ValueError as error:
            raise web.HTTPError(400, "%s" % error) from error
        handler.redirect("%slab/tree/%s" % (server.base_url, quote(path)))

    handler = type("OpenHandler", (base,), {"get": web.authenticated(get)})
    server.web_app.add_handlers(".*$", [(server.base_url + PATH, handler)])
    server.web_app.transforms.insert(0, notice_tag.transform_for(server.base_url))
