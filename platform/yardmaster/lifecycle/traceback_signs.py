"""The failures that are recognised in a script's log: pattern, code, sentence, remedy. `tracebacks` reads logs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from yardmaster.lifecycle.ignite_words import REMEDY as IGNITE_REMEDY
from yardmaster.lifecycle.ignite_words import UNAVAILABLE as IGNITE_UNAVAILABLE

LEGACY_KERAS = "TF_USE_LEGACY_KERAS"


@dataclass(frozen=True)
class Sign:
    """One known failure. `message` and `remedy` may use the pattern's named groups."""

    code: str
    pattern: re.Pattern[str]
    reason: str
    message: str
    remedy: str
    environment: Mapping[str, str] = field(default_factory=dict)


def _sign(
    code: str, pattern: str, reason: str, message: str, remedy: str, environment: Mapping[str, str] | None = None
) -> Sign:
    return Sign(code, re.compile(pattern), reason, message, remedy, environment or {})


# The first that fits a line wins, so the more particular ones come first. The last sign in the log wins, but for the
# weak ones: what follows from another task's end is only believed where nothing else is said.
SIGNS = (
    _sign(
        "protobuf_mismatch",
        r"MessageToString\(\) got an unexpected keyword argument|"
        r"Descriptors cannot (?:not )?be created directly|VersionError: Detected incompatible Protobuf",
        "ImportFailed",
        "TensorFlow and the installed protobuf are incompatible.",
        "Install the protobuf version that this TensorFlow requires; do not upgrade protobuf alone.",
    ),
    _sign(
        "dataset_not_for_ps",
        r"pass this dataset to ClusterCoordinator\.create_per_worker_dataset|"
        r"ParameterServerStrategy`? must be used with",
        "ScriptFailed",
        "The dataset was not created for ParameterServerStrategy. Under Keras 3, fit does not support it.",
        "Use Keras 2: leave TF_USE_LEGACY_KERAS=1 set and import tf_keras or tf.keras, not keras; or write the loop "
        "with ClusterCoordinator.",
    ),
    _sign(
        "keras3_multi_worker",
        r"unsupported type \(<class '\S*PerReplica'>\) to a Tensor",
        "ScriptFailed",
        "Keras 3's fit cannot train under MultiWorkerMirroredStrategy.",
        "Use Keras 2: leave TF_USE_LEGACY_KERAS=1 set and import tf_keras or tf.keras, not keras.",
    ),
    _sign(
        "checkpoint_shard_elsewhere",
        r"_temp/part-\d+-of-\d+ (?:did not exist|not found)",
        "ScriptFailed",
        "Every parameter server wrote its shard of the checkpoint to its own disk, where the chief cannot read it.",
        "Let the chief write all of it: give the session a Scaffold whose saver was made with sharded=False under the "
        "chief's device, as examples/digits/between_graph.py does.",
    ),
    _sign(
        "role_not_in_cluster",
        r"`task_type` '(?P<role>\w+)' not found in cluster_spec",
        "ScriptFailed",
        "The strategy needs a {role}, and the cluster has none.",
        "Launch with the strategy that the script was written for: parameter_server has a chief.",
    ),
    _sign(
        "download_failed",
        r"URL fetch failure on (?P<url>\S{1,200}?): |"
        r"HTTPS?Connection(?:Pool)?\(host='(?P<host>[^']{1,200})'.*(?:Max retries exceeded|Failed to establish)|"
        r"Failed to get url (?P<link>\S{1,200}?)\. |"
        r"URLError: <urlopen error (?P<why>[^>]{1,200})|(?P<what>HTTP Error \d{3}: .{1,100}|gaierror: .{1,100})",
        "ScriptFailed",
        "A download failed: {url}{host}{link}{why}{what}.",
        "Tasks may have no way to the internet. Upload the files as a dataset, attach it to the job and read them "
        "below DATA_DIR; or ask an administrator whether tasks may reach that address.",
    ),
    _sign(
        "attribute_gone",
        r"AttributeError: module 'tensorflow(?:\._api\.v2(?P<below>\.[\w.]{1,60}))?' has no attribute '(?P<name>"
        r"app|flags|estimator|contrib|placeholder|placeholder_with_default|Session|InteractiveSession|ConfigProto|"
        r"GPUOptions|get_variable|variable_scope|global_variables|trainable_variables|global_variables_initializer|"
        r"get_default_graph|reset_default_graph|set_random_seed|random_normal|random_uniform|truncated_normal|layers|"
        r"logging|gfile|python_io|log|to_float|disable_v2_behavior|\w{1,60}Optimizer|Saver|MonitoredTrainingSession|"
        r"MonitoredSession|Server|ClusterDef|replica_device_setter|get_or_create_global_step|FileWriter|"
        r"softmax_cross_entropy_with_logits_v2|ParameterServerStrategyV1|train_and_evaluate|FastGFile|FixedLenFeatureV1)'",
        "ScriptFailed",
        "tf{below}.{name} does not exist in the TensorFlow of the task environment: the script was written for another "
        "version.",
        "Names of TensorFlow 1 are in tensorflow.compat.v1 (import it as tf, and call tf.disable_v2_behavior()); for "
        "tf.app and tf.flags use absl. tf.contrib and tf.estimator were removed: use Keras.",
    ),
    _sign(
        "legacy_optimizer",
        r"`?keras\.optimizers\.legacy`? is not supported in Keras 3",
        "ScriptFailed",
        "The script uses an optimizer of Keras 2 (keras.optimizers.legacy), which Keras 3 does not have.",
        "Run it with Keras 2: set TF_USE_LEGACY_KERAS=1 in the job's environment and use tf.keras; or use the "
        "optimizer of the same name without legacy.",
        {LEGACY_KERAS: "1"},
    ),
    _sign(
        "relative_import",
        r"ImportError: attempted relative import (?P<how>with no known parent package|beyond top-level package)",
        "ImportFailed",
        "The entry point is part of a package, but was run as a script (attempted relative import {how}).",
        "Run it as a module (package.module instead of package/module.py), or import without the leading dot.",
    ),
    _sign(
        "required_flag",
        r"(?:FATAL Flags parsing error|IllegalFlagValueError): .{0,200}?Flag (?P<flag>--[\w.-]{1,100}) must have a "
        r"value other than None",
        "BadArguments",
        "The script needs the flag {flag}, which was not passed.",
        "Add {flag}=... to the job's arguments. If it means the data, log or model directory, set it under paths.",
    ),
    _sign(
        "pkg_resources_gone",
        r"ModuleNotFoundError: No module named 'pkg_resources'",
        "ImportFailed",
        "A package imports pkg_resources (older versions of tensorflow-hub and others do), which setuptools 81 and "
        "later do not have.",
        "Add setuptools<81 to requirements.txt in the code, or use a newer version of that package.",
    ),
    _sign(
        "missing_module",
        r"ModuleNotFoundError: No module named '(?P<module>[\w.]+)'",
        "ImportFailed",
        "The module {module} is not installed in the task environment and not part of the code.",
        "Add {module} to requirements.txt in the code, add its source to the code version, or remove the import.",
    ),
    _sign(
        "import_failed",
        r"ImportError: (?P<what>.{1,200})",
        "ImportFailed",
        "An import failed: {what}.",
        "Compare the versions that the script was written for with those of the task environment.",
    ),
    _sign(
        "syntax_error",
        r"^(?:SyntaxError|IndentationError|TabError): (?P<what>.{1,200})",
        "SyntaxError",
        "Python cannot parse the script: {what}.",
        "Correct the line named above it, upload the code again and launch with the new version.",
    ),
    _sign(
        "unknown_arguments",
        r"error: unrecognized arguments: (?P<flags>.{1,200})",
        "ScriptFailed",
        "The script's argument parser does not know {flags}.",
        "Add the flag to the parser, or, if it is one that Yardmaster passes, empty it under paths (data_flag, "
        "log_flag, model_flag) and read the environment variable instead.",
    ),
    _sign(
        "unknown_flag",
        r"(?:unrecognized flag|Unknown command line flag) '?(?P<flag>[\w-]+)",
        "ScriptFailed",
        "The script does not know the flag {flag}.",
        "Define it, or, if it is one that Yardmaster passes, empty it under paths and read the environment variable.",
    ),
    _sign(
        "missing_arguments",
        r"error: the following arguments are required: (?P<flags>.{1,200})",
        "ScriptFailed",
        "Required arguments are missing: {flags}.",
        "Add them to the job's arguments.",
    ),
    _sign(
        "device_memory",
        r"(?:ResourceExhaustedError|CUDA_ERROR_OUT_OF_MEMORY|\bOOM when allocating)",
        "OutOfMemory",
        "A device ran out of memory.",
        "Use a smaller batch, or spread the model over more workers or parameter servers.",
    ),
    _sign(
        "main_memory",
        r"^(?:numpy\S*)?(?:_ArrayMemoryError|MemoryError)\b|std::bad_alloc",
        "OutOfMemory",
        "The task ran out of main memory.",
        "Request more memory for this role, or read the data in smaller chunks.",
    ),
    _sign(
        "disk_full",
        r"(?:OSError|IOError).*(?:Errno 28|No space left on device)|No space left on device",
        "DiskFull",
        "No space left on the device.",
        "Keep fewer checkpoints and smaller event files, or ask an administrator for space.",
    ),
    _sign(
        "address_in_use",
        r"(?:Address already in use|Could not start gRPC server|errno: 98)",
        "ScriptFailed",
        "The address of the task's server was already taken.",
        "Use the address from TF_CONFIG or the flags, and start one server per task. Do not hard-code a port.",
    ),
    _sign(
        "file_scheme",
        r"(?:UnimplementedError|NotFoundError).*[Ff]ile system scheme '?(?P<scheme>[\w+]+)'? not implemented",
        "ScriptFailed",
        "TensorFlow cannot read {scheme}:// paths here.",
        "Upload the data as a dataset and read it from the data directory.",
    ),
    _sign(
        "file_missing",
        r"(?:FileNotFoundError|NotFoundError|No such file or directory).*?"
        r"(?P<path>(?:[A-Za-z]:\\|/)[^\s'\";,\]]{1,200})",
        "ScriptFailed",
        "The script looked for {path}, which does not exist.",
        "Read inputs below --data_dir (or DATA_DIR) and write below --log_dir (or LOG_DIR); attach the dataset "
        "to the job.",
    ),
    _sign(
        "file_missing",
        r"FileNotFoundError: (?P<what>.{1,200})",
        "ScriptFailed",
        "A file does not exist: {what}.",
        "Paths are relative to the code; inputs are below --data_dir (or DATA_DIR).",
    ),
    _sign(
        "not_writable",
        r"PermissionError: .*?(?P<path>/[^\s'\"]{1,200})",
        "ScriptFailed",
        "The script may not write to {path}.",
        "Write below --log_dir (or LOG_DIR), and results to keep below MODEL_DIR.",
    ),
    _sign(
        "ignite_unavailable",
        r"(?:\bIgnite(?:Query)?Unavailable|\bignite_reader\.errors\.ConnectionLost): "
        r"(?P<what>.{1,300}?)(?:\. Check host and port \(.*|\.?$)",
        IGNITE_UNAVAILABLE,
        "The Ignite cluster did not answer: {what}.",
        IGNITE_REMEDY,
    ),
    _sign(
        "data_corrupt",
        r"DataError: (?P<what>.{1,200}? is corrupt, twice|The shard .{1,200})",
        "CorruptInput",
        "The data cannot be read: {what}.",
        "Run the dataset's check, and upload the damaged files as a new version.",
    ),
    _sign(
        "data_unreadable",
        r"DataError: (?P<what>.{1,300}?)\.?$",
        "ScriptFailed",
        "The data cannot be read: {what}.",
        "Correct the call of yardmaster_runner.data, or the job's inputs.",
    ),
    _sign(
        "record_corrupt",
        r"DataLossError|corrupted record at",
        "CorruptInput",
        "A TFRecord file is damaged or is no TFRecord file.",
        "Run the dataset's check; if it is compressed, tell TFRecordDataset its compression_type.",
    ),
    _sign(
        "no_keyboard",
        r"EOFError: EOF when reading a line",
        "ScriptFailed",
        "The script asked for keyboard input, which tasks do not have.",
        "Pass the value as an argument.",
    ),
    _sign(
        "variable_missing",
        r"KeyError: '?(?P<name>TF_CONFIG|DATA_DIR|LOG_DIR|MODEL_DIR)'?",
        "ScriptFailed",
        "The script expects the variable {name}, which this job does not have.",
        "TF_CONFIG is absent in jobs of one task: read it with os.environ.get. The others are set under paths.",
    ),
    _sign(
        "steps_per_epoch",
        r"please specify a `steps_per_epoch`|`steps_per_epoch`, `validation_steps`.*must be provided",
        "ScriptFailed",
        "fit needs steps_per_epoch here: the dataset is infinite.",
        "Pass steps_per_epoch to fit.",
    ),
)
WEAK_SIGNS = (
    _sign(
        "peer_gone",
        r"(?:UnavailableError|AbortedError|failed to connect to all addresses|Connection reset by peer|Socket closed)",
        "ScriptFailed",
        "Another task of the job stopped responding.",
        "See which task ended first: its log has the cause.",
    ),
)
