"""The address that TensorFlowOnSpark gives the nodes of its clusters, in every Python of a Spark job.

The library takes the address of the way to the Internet. A task may listen on the address alone by which the others of
its job know it, so that one is given instead. Nothing else of the library is changed.
"""

from __future__ import annotations

from types import ModuleType

from yardmaster_runner.in_script import after_import

VARIABLE = "YARDMASTER_SPARK_HOST"
MODULE = "tensorflowonspark.util"


def install(host: str) -> None:
    """To be called once, before the library is imported."""

    def give_address(module: ModuleType) -> None:
        module.get_ip_address = lambda: host  # type: ignore[attr-defined]

    after_import.change(MODULE, give_address)
