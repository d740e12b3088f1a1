"""What the last lines of a failed script's log mean, and what to do about it: common TensorFlow and Keras failures.

A hint beside the verdict, for people. Not here: the verdict itself (`failures`), which never depends on what a script
printed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_LINES = 400
_LINE_LENGTH = 1000
"""A line of a log may have no end; what identifies an error stands at its beginning."""


@dataclass(frozen=True)
class Explanation:
    """What a log's end tells: the reason it fits, one sentence, and what to do."""

    reason: str
    message: str
    remedy: str


@dataclass(frozen=True)
class _Sign:
    """One known failure. `message` and `remedy` may use the pattern's named groups."""

    pattern: re.Pattern[str]
    reason: str
    message: str
    remedy: str


def _sign(pattern: str, reason: str, message: str, remedy: str) -> _Sign:
    return _Sign(re.compile(pattern), reason, message, remedy)


# The first that fits a line wins, so the more particular ones come first. The last sign in the log wins, but for the
# weak ones: what follows from another task's end is only believed where nothing else is said.
_SIGNS = (
    _sign(
        r"MessageToString\(\) got an unexpected keyword argument|"
        r"Descriptors cannot (?:not )?be created directly|VersionError: Detected incompatible Protobuf",
        "ImportFailed",
        "TensorFlow and the installed protobuf are incompatible.",
        "Install the protobuf version that this TensorFlow requires; do not upgrade protobuf alone.",
    ),
    _sign(
        r"pass this dataset to ClusterCoordinator\.create_per_worker_dataset|"
        r"ParameterServerStrategy`? must be used with",
        "ScriptFailed",
        "The dataset was not created for ParameterServerStrategy. Under Keras 3, fit does not support it.",
        "Use Keras 2: leave TF_USE_LEGACY_KERAS=1 set and import tf_keras or tf.keras, not keras; or write the loop "
        "with ClusterCoordinator.",
    ),
    _sign(
        r"unsupported type \(<class '\S*PerReplica'>\) to a Tensor",
        "ScriptFailed",
        "Keras 3's fit cannot train under MultiWorkerMirroredStrategy.",
        "Use Keras 2: leave TF_USE_LEGACY_KERAS=1 set and import tf_keras or tf.keras, not keras.",
    ),
    _sign(
        r"_temp/part-\d+-of-\d+ (?:did not exist|not found)",
        "ScriptFailed",
        "Every parameter server wrote its shard of the checkpoint to its own disk, where the chief cannot read it.",
        "Let the chief write all of it: give the session a Scaffold whose saver was made with sharded=False under the "
        "chief's device, as examples/digits/between_graph.py does.",
    ),
    _sign(
        r"`task_type` '(?P<role>\w+)' not found in cluster_spec",
        "ScriptFailed",
        "The strategy needs a {role}, and the cluster has none.",
        "Launch with the strategy that the script was written for: parameter_server has a chief.",
    ),
    _sign(
        r"ModuleNotFoundError: No module named '(?P<module>[\w.]+)'",
        "ImportFailed",
        "The module {module} is not installed in the task environment and not part of the code.",
        "Add {module} to the code version, or remove the import.",
    ),
    _sign(
        r"ImportError: (?P<what>.{1,200})",
        "ImportFailed",
        "An import failed: {what}.",
        "Compare the versions that the script was written for with those of the task environment.",
    ),
    _sign(
        r"^(?:SyntaxError|IndentationError|TabError): (?P<what>.{1,200})",
        "SyntaxError",
        "Python cannot parse the script: {what}.",
        "Correct the line named above it, upload the code again and launch with the new version.",
    ),
    _sign(
        r"error: unrecognized arguments: (?P<flags>.{1,200})",
        "ScriptFailed",
        "The script's argument parser does not know {flags}.",
        "Add the flag to the parser, or, if it is one that Yardmaster passes, empty it under paths (data_flag, "
        "log_flag, model_flag) and read the environment variable instead.",
    ),
    _sign(
        r"(?:unrecognized flag|Unknown command line flag) '?(?P<flag>[\w-]+)",
        "ScriptFailed",
        "The script does not know the flag {flag}.",
        "Define it, or, if it is one that Yardmaster passes, empty it under paths and read the environment variable.",
    ),
    _sign(
        r"error: the following arguments are required: (?P<flags>.{1,200})",
        "ScriptFailed",
        "Required arguments are missing: {flags}.",
        "Add them to the job's arguments.",
    ),
    _sign(
        r"(?:ResourceExhaustedError|CUDA_ERROR_OUT_OF_MEMORY|\bOOM when allocating)",
        "OutOfMemory",
        "A device ran out of memory.",
        "Use a smaller batch, or spread the model over more workers or parameter servers.",
    ),
    _sign(
        r"^(?:numpy\S*)?(?:_ArrayMemoryError|MemoryError)\b|std::bad_alloc",
        "OutOfMemory",
        "The task ran out of main memory.",
        "Request more memory for this role, or read the data in smaller chunks.",
    ),
    _sign(
        r"(?:OSError|IOError).*(?:Errno 28|No space left on device)|No space left on device",
        "DiskFull",
        "No space left on the device.",
        "Keep fewer checkpoints and smaller event files, or ask an administrator for space.",
    ),
    _sign(
        r"(?:Address already in use|Could not start gRPC server|errno: 98)",
        "ScriptFailed",
        "The address of the task's server was already taken.",
        "Use the address from TF_CONFIG or the flags, and start one server per task. Do not hard-code a port.",
    ),
    _sign(
        r"(?:UnimplementedError|NotFoundError).*[Ff]ile system scheme '?(?P<scheme>[\w+]+)'? not implemented",
        "ScriptFailed",
        "TensorFlow cannot read {scheme}:// paths here.",
        "Upload the data as a dataset and read it from the data directory.",
    ),
    _sign(
        r"(?:FileNotFoundError|NotFoundError|No such file or directory).*?"
        r"(?P<path>(?:[A-Za-z]:\\|/)[^\s'\";,\]]{1,200})",
        "ScriptFailed",
        "The script looked for {path}, which does not exist.",
        "Read inputs below --data_dir (or DATA_DIR) and write below --log_dir (or LOG_DIR); attach the dataset "
        "to the job.",
    ),
    _sign(
        r"FileNotFoundError: (?P<what>.{1,200})",
        "ScriptFailed",
        "A file does not exist: {what}.",
        "Paths are relative to the code; inputs are below --data_dir (or DATA_DIR).",
    ),
    _sign(
        r"PermissionError: .*?(?P<path>/[^\s'\"]{1,200})",
        "ScriptFailed",
        "The script may not write to {path}.",
        "Write below --log_dir (or LOG_DIR), and results to keep below MODEL_DIR.",
    ),
    _sign(
        r"DataError: (?P<what>.{1,200}? is corrupt, twice|The shard .{1,200})",
        "CorruptInput",
        "The data cannot be read: {what}.",
        "Run the dataset's check, and upload the damaged files as a new version.",
    ),
    _sign(
        r"DataError: (?P<what>.{1,300}?)\.?$",
        "ScriptFailed",
        "The data cannot be read: {what}.",
        "Correct the call of yardmaster_runner.data, or the job's inputs.",
    ),
    _sign(
        r"DataLossError|corrupted record at",
        "CorruptInput",
        "A TFRecord file is damaged or is no TFRecord file.",
        "Run the dataset's check; if it is compressed, tell TFRecordDataset its compression_type.",
    ),
    _sign(
        r"EOFError: EOF when reading a line",
        "ScriptFailed",
        "The script asked for keyboard input, which tasks do not have.",
        "Pass the value as an argument.",
    ),
    _sign(
        r"KeyError: '?(?P<name>TF_CONFIG|DATA_DIR|LOG_DIR|MODEL_DIR)'?",
        "ScriptFailed",
        "The script expects the variable {name}, which this job does not have.",
        "TF_CONFIG is absent in jobs of one task: read it with os.environ.get. The others are set under paths.",
    ),
    _sign(
        r"please specify a `steps_per_epoch`|`steps_per_epoch`, `validation_steps`.*must be provided",
        "ScriptFailed",
        "fit needs steps_per_epoch here: the dataset is infinite.",
        "Pass steps_per_epoch to fit.",
    ),
)
_WEAK_SIGNS = (
    _sign(
        r"(?:UnavailableError|AbortedError|failed to connect to all addresses|Connection reset by peer|Socket closed)",
        "ScriptFailed",
        "Another task of the job stopped responding.",
        "See which task ended first: its log has the cause.",
    ),
)


def explain_traceback(lines: Sequence[str]) -> Explanation | None:
    """What these last lines of a log tell, or None where they are not recognised. Never raises."""
    texts = [line[:_LINE_LENGTH].strip() for line in lines[-_LINES:]]
    return _latest(texts, _SIGNS) or _latest(texts, _WEAK_SIGNS)


def _latest(texts: Sequence[str], signs: Sequence[_Sign]) -> Explanation | None:
    for text in reversed(texts):
        for sign in signs:
            found = sign.pattern.search(text)
            if found:
                words = {name: (value or "").strip().rstrip(".") for name, value in found.groupdict().items()}
                return Explanation(sign.reason, sign.message.format(**words), sign.remedy.format(**words))
    return None
