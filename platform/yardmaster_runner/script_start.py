"""Runs at the start of every Python of the script, as `sitecustomize`: a signal that nothing else uses has it write the
stacks of its threads to its log (`yardmaster_runner.stacks`), and in TensorFlow 1 mode the import statement is replaced
(`yardmaster_runner.in_script.tf1`). In a Spark job TensorFlowOnSpark gets its address
(`yardmaster_runner.in_script.spark_host`). Where it lies: `offered`.

It is found in the place of the modules of its name that follow it in the path, and runs the next of them. But for that
mode it stands alone, and nothing that goes wrong here may be felt by the script.
"""

from __future__ import annotations

import contextlib
import importlib.machinery
import importlib.util
import os
import sys


def _write_stacks_on_signal() -> None:
    import faulthandler
    import signal

    faulthandler.register(signal.SIGRTMAX - 2, file=2, all_threads=True)


def _begin_tensorflow_1_mode() -> None:
    if os.environ.get("YARDMASTER_TF1"):
        from yardmaster_runner.in_script import tf1

        tf1.install()


def _give_tensorflow_on_spark_its_address() -> None:
    if os.environ.get("YARDMASTER_SPARK_HOST"):
        from yardmaster_runner.in_script import spark_host

        spark_host.install(os.environ["YARDMASTER_SPARK_HOST"])


def _run_the_next() -> None:
    here = os.path.dirname(os.path.abspath(__file__))
    places = [os.path.abspath(one or ".") for one in sys.path]
    later = sys.path[places.index(here) + 1 :] if here in places else []
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", later)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


with contextlib.suppress(Exception):  # another system, or a Python without it: there are no stacks then
    _write_stacks_on_signal()
_begin_tensorflow_1_mode()
_give_tensorflow_on_spark_its_address()
_run_the_next()
