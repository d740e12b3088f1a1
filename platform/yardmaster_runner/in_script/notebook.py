"""Runs a notebook in this process: `python -m yardmaster_runner.in_script.notebook PATH [arguments]`.

The cells share the names of `__main__`, as in a script, so that signals, exit codes, tracebacks and TF_CONFIG are those
of a script. What they print is passed on as it comes, and the notebook with its outputs is kept, also when a cell
fails. Not here: how cells are read (`notebook_cells`), magics (`notebook_shell`), what is kept (`notebook_output`).
"""

from __future__ import annotations

import ast
import asyncio
import base64
import inspect
import json
import linecache
import os
import sys
import threading
import traceback
import types
import warnings
from typing import Any, Dict, List

from yardmaster_runner.in_script import notebook_cells as cells
from yardmaster_runner.in_script.notebook_output import Outputs, Stream, data_of, figures
from yardmaster_runner.in_script.notebook_shell import Shell, shown_words, stand_in

VARIABLE = "YARDMASTER_NOTEBOOK"
"""JSON: the `parameters`, and the file in which the executed notebook is to be kept (`keep`; empty: nowhere)."""
SAVE_EVERY = 5.0
WRITING = ".tempstate1"
"""The end of the file's name while it is written: no output (`output_files`) is called so."""


class Execution:
    """One run of a notebook."""

    def __init__(self, path: str, notebook: Dict[str, Any], keep: str) -> None:
        self._name, self._notebook, self._keep = os.path.basename(path), notebook, keep
        self._outputs = Outputs()
        self._count = 0
        self._loop: Any = None
        self._own_main = sys.modules["__main__"]  # its names are used here after the cells have taken its place
        self.module = types.ModuleType("__main__")
        self._shell = Shell(self.module.__dict__, self._outputs)

    def prepare(self) -> None:
        """Make this process look like a notebook to the cells."""
        for cell in self._notebook["cells"]:
            if cell["cell_type"] == "code":
                cell.update(outputs=[], execution_count=None)
        sys.modules["__main__"] = self.module
        names = {"display": self.display, "get_ipython": lambda: self._shell, "__builtins__": __builtins__}
        self.module.__dict__.update(names)
        stand_in(self.display, self._outputs, self._shell)
        sys.stdout = Stream("stdout", sys.stdout, self._outputs)
        sys.stderr = Stream("stderr", sys.stderr, self._outputs)
        os.environ.setdefault("MPLBACKEND", "Agg")
        warnings.filterwarnings("ignore", message=".*is non-interactive, and thus cannot be shown")

    def run(self) -> int:
        """Every cell in turn; the exit code. A cell that is tagged `raises-exception` may fail."""
        todo = cells.code_cells(self._notebook)
        own = [one for one in todo if cells.INJECTED not in cells.tags_of(one)]
        saver = threading.Thread(target=self._keep_saving, name="notebook", daemon=True)
        saver.start()
        try:
            for cell in todo:
                number = own.index(cell) + 1 if cell in own else 0
                if not self._run_cell(cell, number, len(own)) and "raises-exception" not in cells.tags_of(cell):
                    return 1
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            self.save()
        return 0

    def _run_cell(self, cell: Dict[str, Any], number: int, total: int) -> bool:
        source = cells.source_of(cell)
        first = source.strip().split("\n")[0][:100]
        self._say("[cell %d/%d] %s" % (number, total, first) if number else "[parameters] %s" % self._name)
        self._count += 1
        cell["execution_count"] = self._count
        self._outputs.begin(cell)
        name = "%s, cell %d" % (self._name, number) if number else "%s, parameters" % self._name
        try:
            self._execute(cells.as_python(source), name, shows=not source.rstrip().endswith(";"))
            self._show_figures()
        except SystemExit:
            raise
        except BaseException as error:
            self._outputs.failed(error, self._tell(error))
            if not isinstance(error, Exception):
                raise
            return False
        return True

    def _execute(self, source: str, name: str, *, shows: bool) -> None:
        """The statements, and the value of the last one where that is an expression."""
        linecache.cache[name] = (len(source), None, source.splitlines(True), name)
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        tree: Any = compile(source, name, "exec", flags | ast.PyCF_ONLY_AST)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        self._evaluate(compile(tree, name, "exec", flags))
        if last is not None:
            value = self._evaluate(compile(ast.Expression(last.value), name, "eval", flags))
            if value is not None and shows:
                self.module.__dict__["_"] = value
                self._say(shown_words(value))
                self._outputs.show(data_of(value), self._count)

    def _evaluate(self, code: types.CodeType) -> Any:
        if not code.co_flags & inspect.CO_COROUTINE:
            return eval(code, self.module.__dict__)
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            asyncio.set_event_loop(self._loop)
        return self._loop.run_until_complete(eval(code, self.module.__dict__))

    def display(self, *values: Any, **_: Any) -> None:
        """What cells call to show something before their end."""
        for value in values:
            self._say(shown_words(value))
            self._outputs.show(data_of(value))

    def _show_figures(self) -> None:
        for picture in figures():
            self._say("[figure: see the executed notebook]")
            encoded = base64.b64encode(picture).decode()
            self._outputs.show({"text/plain": "<Figure>", "image/png": encoded})

    def _say(self, text: str) -> None:
        """In the log alone."""
        sys.stdout.flush()
        real = sys.__stdout__
        if real is not None:
            real.write(text + "\n")
            real.flush()

    def _tell(self, error: BaseException) -> List[str]:
        """The traceback as Python prints it, from the cell on, in the log; its lines."""
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
            trace = trace.tb_next
        lines = traceback.format_exception(type(error), error, trace)
        sys.stdout.flush()
        if sys.__stderr__ is not None:
            sys.__stderr__.write("".join(lines))
            sys.__stderr__.flush()
        return lines

    def _keep_saving(self) -> None:
        """A cell may take hours, and a task that is killed says nothing more."""
        while True:
            self._outputs.changed.wait()
            threading.Event().wait(SAVE_EVERY)
            self.save()

    def save(self) -> None:
        """Write the executed notebook, whole or not at all."""
        if not self._keep:
            return
        with self._outputs.locked():
            self._outputs.changed.clear()
            text = json.dumps(self._notebook, indent=1)
            try:
                os.makedirs(os.path.dirname(self._keep), exist_ok=True)
                with open(self._keep + WRITING, "w", encoding="utf-8") as file:
                    file.write(text)
                os.replace(self._keep + WRITING, self._keep)
            except OSError as error:
                self._say("yardmaster: the executed notebook cannot be kept: %s" % error)


def main() -> int:
    path = sys.argv[1]
    orders = json.loads(os.environ.pop(VARIABLE, "{}"))
    sys.argv = sys.argv[1:]
    sys.path[0] = os.path.dirname(os.path.abspath(path))
    try:
        with open(path, encoding="utf-8-sig", errors="replace") as file:
            notebook = cells.read(file.read(cells.LARGEST + 1))
    except cells.NotANotebook as error:
        sys.stderr.write("%s cannot be run. %s %s\n" % (path, error.message, error.remedy))
        return 1
    notebook = cells.with_parameters(notebook, orders.get("parameters") or {})
    execution = Execution(path, notebook, orders.get("keep") or "")
    execution.prepare()
    return execution.run()


if __name__ == "__main__":
    sys.exit(main())
