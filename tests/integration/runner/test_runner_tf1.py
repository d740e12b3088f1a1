"""TensorFlow 1 mode, with a TensorFlow of a few lines: who gets version 1, and what stays as it is."""

from __future__ import annotations

from textwrap import dedent

import pytest

from tests.integration.runner.conftest import SOURCE

LIBRARIES = {
    "tensorflow/__init__.py": "from tensorflow import compat, train\nfunction = 'function'\n",
    "tensorflow/train/__init__.py": "Saver = 'Saver of 2'\n",
    "tensorflow/python/__init__.py": "",
    "tensorflow/python/ops.py": "import tensorflow\nadd = 'add'\n",
    "tensorflow/keras/__init__.py": "Model = 'Model'\n",
    "tensorflow/compat/__init__.py": "from tensorflow.compat import v1\n",
    "tensorflow/compat/v1/__init__.py": """
        from tensorflow.compat.v1 import train
        placeholder, _private = 'placeholder', 1
        def disable_v2_behavior():
            print('off')
    """,
    "tensorflow/compat/v1/train/__init__.py": "Saver = 'Saver of 1'\n",
    "library.py": "import tensorflow\nIS_1 = hasattr(tensorflow, 'placeholder')\n",
    "sitecustomize.py": "print('the environment has its own')\n",
}


@pytest.fixture
def trying(task, portal, tmp_path):
    """Runs a script with these libraries beside it; its lines."""
    for path, text in LIBRARIES.items():
        place = tmp_path / "libraries" / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(dedent(text))
    task.variables["PYTHONPATH"] = f"{SOURCE}:{tmp_path / 'libraries'}"

    def run(script: str, exit_code: int = 0, **changes) -> list[str]:
        portal.orders(dedent(script), **{"spec_tf1": True, **changes})
        assert task.run() == exit_code, portal.lines()
        first, *others = [line.decode() for line in portal.lines()]
        assert first == "the environment has its own"
        return others

    return run


def test_the_script_gets_version_1_and_a_library_what_is_installed(trying):
    script = """
        import library
        import tensorflow as tf
        print(tf.placeholder, tf.function, tf.__name__, library.IS_1, hasattr(tf, "nothing"))
    """
    assert trying(script) == ["off", "placeholder function tensorflow False False"]


def test_every_way_to_import_leads_there(trying):
    script = """
        import tensorflow
        from tensorflow import placeholder, train, function
        from tensorflow.train import Saver
        from tensorflow.python.ops import add
        from tensorflow.keras import Model
        import tensorflow.python.ops as ops
        import tensorflow.python.ops
        import tensorflow.train as trained
        import tensorflow.compat.v1 as v1
        from tensorflow import *
        print(placeholder, train.Saver, Saver, add, Model, ops.add, tensorflow.python.ops.add, trained.Saver)
        print(v1.placeholder, "_private" in globals(), "disable_v2_behavior" in globals())
        def later():
            import tensorflow as again
            return again is tensorflow
        print(later(), tensorflow.compat.v1 is v1)
    """
    lines = trying(script)
    assert lines[:2] == ["off", "placeholder Saver of 1 Saver of 1 add Model add add Saver of 1"]
    assert lines[2:] == ["placeholder False True", "True True"]


@pytest.mark.parametrize(
    "line",
    [
        "import tensorflow.contrib.slim as slim",
        "from tensorflow.contrib import layers",
        "from tensorflow import contrib",
        "import tensorflow as tf; tf.contrib.layers",
    ],
)
def test_what_is_gone_is_explained(trying, portal, line):
    lines = trying(line + "\n", 1)
    assert "TensorFlow 2 has no tf.contrib, also not in TensorFlow 1 mode." in lines[-1]
    assert "tf_slim" in portal.reports[-1]["message"]


def test_a_module_and_a_command_are_in_that_mode_too(trying):
    script = "import tensorflow as tf\nprint(tf.placeholder)\n"
    assert trying(script, entry_point="-m train") == ["off", "placeholder"]


def test_a_command_is_in_that_mode_too(trying):
    script = "import tensorflow as tf\nprint(tf.placeholder)\n"
    assert trying(script, entry_point="", spec_command="python3 train.py") == ["off", "placeholder"]


def test_without_the_mode_nothing_is_changed(trying, task):
    script = "import builtins, tensorflow\nprint(hasattr(tensorflow, 'placeholder'), builtins.__import__)\n"
    assert trying(script, spec_tf1=False) == ["False <built-in function __import__>"]
    assert not (task.work / "tf1").exists()


def test_the_variable_of_the_user_decides_about_keras(trying):
    script = "import os\nprint(os.environ['TF_USE_LEGACY_KERAS'])\n"
    assert trying(script) == ["1"]


def test_a_task_in_that_mode_writes_its_stacks_too_and_runs_the_environments_start_once(trying, tmp_path):
    (tmp_path / "libraries" / "sitecustomize.py").write_text("print('the environment has its own', flush=True)\n")
    script = """
        import os, signal, sys
        import tensorflow as tf
        print(tf.placeholder, sys.modules["sitecustomize"].__file__.endswith("libraries/sitecustomize.py"), flush=True)
        os.kill(os.getpid(), signal.SIGRTMAX - 2)
        print("alive")
    """
    lines = trying(script)
    assert lines[:2] == ["off", "placeholder True"]
    assert any("most recent call first" in line for line in lines), lines
    assert lines[-1] == "alive"
    assert "the environment has its own" not in lines


@pytest.mark.usefixtures("trying")
def test_a_sitecustomize_in_the_code_does_not_take_its_place(task, portal):
    code = {
        "sitecustomize.py": "print('of the code')\n",
        "train.py": "import tensorflow as tf\nprint(tf.placeholder)\n",
    }
    portal.orders("", spec_tf1=True)
    portal.order["code"]["files"] = [portal.add_file(path, text.encode()) for path, text in code.items()]
    assert task.run() == 0, portal.lines()
    assert portal.lines() == [b"of the code", b"off", b"placeholder"]
