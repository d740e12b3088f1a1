"""Lines that TensorFlow, its compiler and gRPC write at every start on machines where nothing is wrong. Pure.

They are no errors or warnings, whatever their letter says, and no last words. Each is known by the source file that
writes it and by how it begins, never by a word alone: what a script prints, and any other line of the same file, counts
as what it is. `frontend/src/log/noise.ts` has the same list, and a test compares them.
"""

from __future__ import annotations

import re

PREFIX = r"^(?:[IWE]\d{4} \d\d:\d\d:[\d.]+ +\d+ |\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+: [IWE] )(?:[\w./+-]{0,120}/)?"
"""Of absl and of TensorFlow's C++, up to the folder of the source file."""

BY_FILE = (
    # xla/stream_executor/cuda: the CUDA plugins are linked into the wheel and register themselves twice.
    r"cuda_(?:dnn|fft|blas)\.cc:\d+\] Unable to register cu(?:DNN|FFT|BLAS) factory: Attempting to register factory",
    # xla/service/computation_placer.cc: the same of the placer.
    r"computation_placer\.cc:\d+\] computation placer already registered",
    # xla/tsl/cuda/cudart_stub.cc, tensorflow/tsl/cuda/cudart_stub.cc: the machine has no GPU driver.
    r"cudart_stub\.cc:\d+\] (?:Could not find cuda drivers|Ignore above cudart dlerror)",
    # xla/stream_executor/cuda/cuda_platform.cc, cuda_driver.cc: no libcuda (303), or no GPU to be seen.
    r"cuda_(?:platform|driver)\.cc:\d+\] failed call to cuInit: .{0,80}(?:UNKNOWN ERROR \(303\)|CUDA_ERROR_NO_DEVICE)",
    # xla/stream_executor/cuda/cuda_diagnostics.cc: what follows that, for information.
    r"cuda_diagnostics\.cc:\d+\] (?:env: CUDA_VISIBLE_DEVICES|CUDA_VISIBLE_DEVICES is set|verbose logging is disabled"
    r"|retrieving CUDA diagnostic|hostname: |libcuda reported|kernel reported|kernel driver does not appear)",
    # xla/stream_executor/cuda/cuda_executor.cc: no NUMA node in containers.
    r"cuda_(?:executor|gpu_executor)\.cc:\d+\] (?:successful NUMA node read|could not open file to read NUMA node)",
    # tensorflow/core/util/port.cc: oneDNN is in use.
    r"port\.cc:\d+\] oneDNN custom operations are on\.",
    # tensorflow/core/platform/cpu_feature_guard.cc: instructions that the build does not use.
    r"cpu_feature_guard\.cc:\d+\] This TensorFlow binary is optimized",
    # tensorflow/compiler/tf2tensorrt/utils/py_utils.cc: TensorRT is not installed.
    r"py_utils\.cc:\d+\] TF-TRT Warning: Could not find TensorRT",
    # tensorflow/compiler/mlir: a pass that no one asked for.
    r"mlir_graph_optimization_pass\.cc:\d+\] None of the MLIR Optimization Passes are enabled",
    r"dump_mlir_util\.cc:\d+\] disabling MLIR crash reproducer",
    # grpc/src/core/lib/iomgr, event_engine: which poller is used, and that a fork left it alone.
    r"ev_epoll1_linux\.cc:\d+\] grpc epoll fd: ",
    r"(?:fork_posix|fork)\.cc:\d+\] Other threads are currently calling into gRPC, skipping fork\(\) handlers",
    r"ev_poll_posix\.cc:\d+\] FD from fork parent still in poll list",
)
WHOLE = (
    # absl/log/internal/log_sink_set.cc
    r"^WARNING: All log messages before absl::InitializeLog\(\) is called are written to STDERR$",
    # tensorflow/core/platform/cpu_feature_guard.cc: the second line of its note.
    r"^To enable the following instructions: [A-Z0-9_. ]{1,200}, in other operations, rebuild TensorFlow with the "
    r"appropriate compiler flags\.$",
)
"""Lines without a prefix."""

LONGEST = 400
_NOISE = re.compile("%s(?:%s)|%s" % (PREFIX, "|".join(BY_FILE), "|".join(WHOLE)))
_BEGINS = ("I", "W", "E", "T", "1", "2")


def is_noise(line: str) -> bool:
    """Whether the line is one of these. It is without colours, as C++ writes it."""
    return line.startswith(_BEGINS) and _NOISE.match(line[:LONGEST]) is not None
