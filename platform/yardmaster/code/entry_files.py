"""Which file of the code a job starts with: that of its entry point, or the one that its command most likely runs."""

from __future__ import annotations

import re
from collections.abc import Container

from yardmaster.job.spec import TrainingSpec
from yardmaster_runner.entry_point import files_of_module, module_of

_WORDS = re.compile(r"""[^\s'"`;&|()<>]+""")
_MODULE = re.compile(r"-m\s+([\w.]+)")


def entry_file(spec: TrainingSpec, files: Container[str]) -> str:
    """Its path. Of a module that is not there the entry point itself; of a command that runs no file of the code,
    nothing."""
    if spec.command:
        return _of_command(spec.command, files)
    module = module_of(spec.entry_point)
    return _of_module(module, files) or spec.entry_point if module else spec.entry_point


def module_name(path: str) -> str:
    """What `python -m` calls this file."""
    return path.removesuffix(".py").removesuffix("/__main__").replace("/", ".")


def _of_command(command: str, files: Container[str]) -> str:
    """The first file of the code that the command names: which one it runs only the shell can say."""
    named = [word.removeprefix("./") for word in _WORDS.findall(command) if word.endswith(".py")]
    modules = [_of_module(name, files) for name in _MODULE.findall(command)]
    return next((one for one in [*modules, *named] if one and one in files), "")


def _of_module(name: str, files: Container[str]) -> str:
    return next((one for one in files_of_module(name) if one in files), "")
