"""Which modules a script needs that its environment will not have, and which packages are of no use in a task.

The environment is the task's image (`surroundings.ImageFacts`), the standard library, the code itself and what is asked
for in requirements. Not here: which imports count (`needed_imports`), and how requirements are written
(`requirement_files`).
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping, Sequence

from yardmaster.code.findings import Finding, Fix, warn
from yardmaster.code.requirement_files import Asked
from yardmaster.code.script_facts import Facts, Location
from yardmaster.code.surroundings import Surroundings
from yardmaster.job.spec_limits import shorten
from yardmaster_runner.requirement_files import normal

MOST_MISSING = 8
_NAMESPACES = frozenset({"google"})
"""Of these the second level says which distribution it is."""
_EVERYWHERE = frozenset(sys.stdlib_module_names) | {"yardmaster_runner", "pip", "__main__"}
_PROVIDERS: Mapping[str, tuple[str, ...]] = {
    "attr": ("attrs",),
    "bs4": ("beautifulsoup4",),
    "Crypto": ("pycryptodome",),
    "cv2": ("opencv-python-headless", "opencv-python", "opencv-contrib-python", "opencv-contrib-python-headless"),
    "dateutil": ("python-dateutil",),
    "docx": ("python-docx",),
    "dotenv": ("python-dotenv",),
    "fitz": ("pymupdf",),
    "git": ("gitpython",),
    "google.cloud": ("google-cloud-storage",),
    "imblearn": ("imbalanced-learn",),
    "keras_cv": ("keras-cv",),
    "keras_nlp": ("keras-nlp",),
    "lightgbm": ("lightgbm",),
    "magic": ("python-magic",),
    "matplotlib": ("matplotlib",),
    "mpl_toolkits": ("matplotlib",),
    "MySQLdb": ("mysqlclient",),
    "osgeo": ("gdal",),
    "pkg_resources": ("setuptools<81",),
    "psycopg2": ("psycopg2-binary", "psycopg2"),
    "pycocotools": ("pycocotools",),
    "pydicom": ("pydicom",),
    "pylab": ("matplotlib",),
    "serial": ("pyserial",),
    "skimage": ("scikit-image",),
    "slugify": ("python-slugify",),
    "tensorflow_datasets": ("tensorflow-datasets", "tfds-nightly"),
    "tensorflow_hub": ("tensorflow-hub",),
    "tensorflow_models": ("tf-models-official",),
    "tensorflow_probability": ("tensorflow-probability", "tfp-nightly"),
    "tensorflow_text": ("tensorflow-text",),
    "tensorflow_transform": ("tensorflow-transform",),
    "tfx": ("tfx",),
    "umap": ("umap-learn",),
    "usb": ("pyusb",),
    "wx": ("wxpython",),
    "yaml": ("pyyaml",),
    "zmq": ("pyzmq",),
}
"""Distributions that are not called like the module that they bring; the first one is proposed."""

_KERAS_OWN = "Keras has these layers, losses and optimizers itself: tf.keras.optimizers.AdamW, tf.keras.losses, …"
_USELESS: Mapping[str, tuple[str, str]] = {
    "pyspark": (
        "A Spark session needs a Spark cluster, which a job has with the strategy spark alone.",
        "Choose the strategy spark, or read the files of a dataset without Spark.",
    ),
    "horovod": (
        "Horovod needs its own launcher, which does not run here: tasks are started by the portal.",
        "Use tf.distribute.MultiWorkerMirroredStrategy and the strategy multi_worker_mirrored.",
    ),
    "tensorflow_addons": (
        "tensorflow-addons is no longer maintained and does not go with current TensorFlow and Keras.",
        _KERAS_OWN,
    ),
    "tensorflow_estimator": (
        "tf.estimator was removed from TensorFlow in version 2.16.",
        "Train a Keras model with fit, or a graph with tf.compat.v1.train.MonitoredTrainingSession.",
    ),
    "smdistributed": (
        "SageMaker's own distribution library runs on SageMaker only.",
        "Use tf.distribute.MultiWorkerMirroredStrategy and the strategy multi_worker_mirrored.",
    ),
    "kaggle_datasets": (
        "kaggle_datasets works in Kaggle's notebooks only.",
        "Attach the data as a dataset and read it below $DATA_DIR.",
    ),
}
_OF_CURRENT_TENSORFLOW = frozenset({"tensorflow_addons", "tensorflow_estimator"})
"""Of no use with the TensorFlow that the engines' own image has, or a later one; older ones had them."""
_ALIASES = {"sparkdl": "pyspark", "tensorflowonspark": "pyspark", "elephas": "pyspark"}
_USELESS_NAMES: Mapping[str, str] = {
    "tensorflow.estimator": "tensorflow_estimator",
    "tensorflow.compat.v1.estimator": "tensorflow_estimator",
}
_MULTI_GPU = (
    "multi_gpu_model was removed from Keras.",
    "Make the model under tf.distribute.MirroredStrategy().scope(), which uses all GPUs of a task.",
)
_SAID_ELSEWHERE = ("tensorflow_io", "google.colab")


def missing_packages(needed: Mapping[str, Location], around: Surroundings, asked: Asked) -> Iterator[Finding]:
    """Of the modules that are imported, by dotted name, those that nothing brings. None where it is not known what the
    image has."""
    there = around.image.modules
    if there is None or not asked.all:  # it may be in a file that is not read here
        return
    distributions = frozenset() if around.image.is_own else frozenset(map(normal, there))
    reported: set[str] = set()
    for name, place in needed.items():
        module = _module_of(name)
        top = module.partition(".")[0]
        if top in around.own_names or module in _EVERYWHERE or module in there or _is_said_elsewhere(name, around):
            continue
        providers = _PROVIDERS.get(module, (module.replace(".", "-").replace("_", "-"),))
        if providers[0] in reported or _is_asked_for(module, providers, {*asked.names, *distributions}):
            continue
        reported.add(providers[0])
        if len(reported) > MOST_MISSING:
            return
        yield _missing(module, providers[0], asked.file, place)


def _module_of(name: str) -> str:
    parts = name.split(".")
    return ".".join(parts[:2]) if parts[0] in _NAMESPACES else parts[0]


def _is_asked_for(module: str, providers: Sequence[str], asked: Collection[str]) -> bool:
    """Also where a distribution is called somewhat like the module: what it brings is not known before it is there."""
    own = normal(module)
    return any(normal(one.partition("<")[0]) in asked for one in providers) or any(own in one for one in asked)


def _missing(module: str, distribution: str, file: str, place: Location) -> Finding:
    """Requirements of the specification take the place of those of a file in the code: beside one there is no fix."""
    message = f"The module {shorten(module)} is not in the task's environment."
    if file:
        remedy = f"Add {shorten(distribution)} to {file} in the code."
        return warn("missing_package", message, remedy, place)
    fix = Fix(f"Add {shorten(distribution)} to the requirements", "requirements", distribution, adds=True)
    remedy = f"Add {shorten(distribution)} to the requirements of the job, or to requirements.txt in the code."
    return warn("missing_package", message, remedy, place, fixes=(fix,))


def useless_packages(facts: Facts, around: Surroundings, *, has_spark: bool = False) -> Iterator[Finding]:
    """Packages and names that cannot help in a task, with what to do instead."""
    is_said = has_spark or facts.imports_any("pyspark", "tensorflowonspark") is not None  # by the strategy's check
    found: dict[str, Location] = {}
    for name, place in {**facts.names, **facts.imports}.items():
        which = _useless_of(name, around)
        if which and which not in found and not (is_said and which == "pyspark"):
            found[which] = place
    for which, place in found.items():
        message, remedy = _USELESS[which]
        yield warn("unsupported_package", message, remedy, place)
    if not around.image.is_current:
        return
    if (used := facts.uses("multi_gpu_model") or facts.imports_any("keras.utils.multi_gpu_model")) is not None:
        yield warn("unsupported_package", *_MULTI_GPU, used)


def _is_said_elsewhere(name: str, around: Surroundings) -> bool:
    return name.startswith(_SAID_ELSEWHERE) or _useless_of(name, around) != ""


def _useless_of(name: str, around: Surroundings) -> str:
    """Which of the packages it is; empty: none, or one that helps with the TensorFlow of the image."""
    found = _any_useless_of(name)
    return "" if found in _OF_CURRENT_TENSORFLOW and not around.image.is_current else found


def _any_useless_of(name: str) -> str:
    top = name.partition(".")[0]
    if top in _ALIASES or top in _USELESS:
        return _ALIASES.get(top, top)
    for prefix, which in _USELESS_NAMES.items():
        if name == prefix or name.startswith(f"{prefix}."):
            return which
    return ""
