"""TensorFlow 1 mode: `import tensorflow` in the user's code gives `tensorflow.compat.v1`, with version 2 behaviour off.

Only imports of the user's own files are led there, by who asks: a library that is installed is written for the
TensorFlow that is installed, and gets that. So the import statement itself is replaced (`builtins.__import__`), which
costs each import a comparison of ten letters. Not here: how this comes into the process
(`yardmaster_runner.script_start`).
"""

from __future__ import annotations

import builtins
import os
import sys
import types
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence

VARIABLE = "YARDMASTER_TF1"
"""Names the folder of the user's code."""
NAME = "tensorflow"
V1 = "tensorflow.compat.v1"
GONE = {
    "contrib": "TensorFlow 2 has no tf.contrib, also not in TensorFlow 1 mode. Write the layer or optimizer with "
    "tf.layers, tf.nn or tf.train, read data with tf.data, or install the package that it became (tf_slim for "
    "contrib.slim and contrib.layers, tensorflow_addons for contrib.seq2seq).",
    "examples": "TensorFlow 2 has no tensorflow.examples, also not in TensorFlow 1 mode. Attach the data as a dataset "
    "and read it below the data directory.",
    "estimator": "TensorFlow 2.16 and later have no tf.estimator, also not in TensorFlow 1 mode. Write the loop with "
    "tf.train.MonitoredTrainingSession, or use tf.keras.",
}
"""What no TensorFlow of today has, and what to do."""
_Import = Callable[..., Any]


class TensorFlow1(types.ModuleType):
    """What the user's code sees as `tensorflow`: version 1's names; what it has not, as of version 2."""

    def __init__(self, real: types.ModuleType, v1: types.ModuleType) -> None:
        super().__init__(NAME, v1.__doc__)
        self.__dict__.update(_real=real, _v1=v1, compat=real.compat)
        for name in ("__file__", "__path__", "__spec__", "__loader__", "__package__"):
            self.__dict__[name] = getattr(real, name, None)

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            return [one for one in dir(self._v1) if not one.startswith("_")]
        for module in (self._v1, self._real):
            try:
                return getattr(module, name)
            except AttributeError:
                pass  # the next one may have it
        inner = sys.modules.get(NAME + "." + name)
        if inner is not None:
            return inner
        raise AttributeError(GONE.get(name) or "module 'tensorflow' has no attribute %r" % name)

    def __dir__(self) -> List[str]:
        return sorted({*dir(self._v1), *self.__dict__})


class Imports:
    """`importing` is the import statement from then on; `root` is the folder of the user's code."""

    def __init__(self, root: str, before: _Import) -> None:
        self._root = os.path.join(os.path.realpath(root), "")
        self._before = before
        self._module: Optional[TensorFlow1] = None
        self._known: Dict[str, bool] = {}

    def importing(
        self,
        name: str,
        globals: Optional[Mapping[str, Any]] = None,
        locals: Optional[Mapping[str, Any]] = None,
        fromlist: Optional[Sequence[str]] = (),
        level: int = 0,
    ) -> Any:
        """What Python's own `__import__` gives, but for TensorFlow in the user's code."""
        if name[:10] != NAME or level or (name != NAME and name[10] != ".") or not self._is_users(globals):
            return self._before(name, globals, locals, fromlist, level)
        top = name[11:].partition(".")[0]
        asked = (top, *(fromlist or ())) if name == NAME else (top,)
        self._refuse_what_is_gone(asked)
        if name == NAME or not fromlist:
            self._before(name, globals, locals, (), 0)
            return self.tensorflow1()
        self.tensorflow1()
        try:
            return self._before("%s.%s" % (V1, name[11:]), globals, locals, fromlist, 0)
        except ModuleNotFoundError as error:
            if not (error.name or "").startswith(V1):
                raise
        return self._before(name, globals, locals, fromlist, 0)

    def tensorflow1(self) -> TensorFlow1:
        """The module that stands for TensorFlow; version 2 behaviour is off then."""
        if self._module is None:
            v1 = self._before(V1, None, None, ("v1",), 0)
            v1.disable_v2_behavior()
            _free_names_of_flags()
            self._module = TensorFlow1(sys.modules[NAME], v1)
        return self._module

    def _refuse_what_is_gone(self, asked: Sequence[str]) -> None:
        for one in asked:
            if one in GONE and not hasattr(self._before(NAME, None, None, (), 0), one):
                raise ModuleNotFoundError(
                    "No module named 'tensorflow.%s': %s" % (one, GONE[one]), name=NAME + "." + one
                )

    def _is_users(self, names: Optional[Mapping[str, Any]]) -> bool:
        """Whether the code that imports is the user's: a file below the root, or a main program without a file."""
        if names is None:
            return False
        file = names.get("__file__")
        if not isinstance(file, str):
            return names.get("__name__") == "__main__"
        if file not in self._known:
            self._known[file] = os.path.realpath(file).startswith(self._root)
        return self._known[file]


def _free_names_of_flags() -> None:
    """The flags that absl's logging defines (`log_dir`, `v`) may be defined by the script, as in TensorFlow 1."""
    flags = sys.modules.get("absl.flags")
    if flags is not None:
        for one in flags.FLAGS.flags_by_module_dict().get("absl.logging", []):
            one.allow_override = True


def install(environment: Mapping[str, str] = os.environ) -> None:
    """Replace the import statement of this process, where the job is in TensorFlow 1 mode."""
    root = environment.get(VARIABLE)
    if root:
        builtins.__import__ = Imports(root, builtins.__import__).importing
