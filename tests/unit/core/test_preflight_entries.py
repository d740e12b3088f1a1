"""What preflight reads of a module, of a command and of a notebook, and where it finds it."""

from __future__ import annotations

from tests.unit.core.generators import make_spec
from yardmaster.code.findings import Fix
from yardmaster.code.preflight import preflight
from yardmaster.job.spec import USUAL_PATHS, Strategy

SINGLE = Strategy.SINGLE
OLD = "import tensorflow as tf\ntf.placeholder(tf.float32)\n"


def test_the_file_of_a_module_is_read_and_what_it_imports():
    files = {"package/train.py": "from package import net\n", "package/net.py": OLD}
    found = preflight(make_spec(SINGLE, entry_point="-m package.train"), files)
    assert [(one.code, one.file, one.line) for one in found] == [("tensorflow_1", "package/net.py", 2)]


def test_a_package_comes_before_a_file_of_its_name():
    files = {"package/__main__.py": OLD, "package.py": ""}
    assert [one.file for one in preflight(make_spec(SINGLE, entry_point="-m package"), files)] == [
        "package/__main__.py"
    ]


def test_a_module_that_is_not_there_is_named_with_a_likely_one():
    spec = make_spec(SINGLE, entry_point="-m pakage.train")
    (found,) = preflight(spec, {"package/train.py": "", "package/__init__.py": ""})
    assert found.code == "entry_point_missing"
    assert "neither pakage/train/__main__.py nor pakage/train.py" in found.message
    assert found.remedy == "Did you mean -m package.train?"


def test_the_file_that_a_command_runs_is_read():
    for line in ("cd src; python -u ./train.py", "python -m train", "nice python train.py --x | tee log"):
        spec = make_spec(SINGLE, entry_point="", command=line)
        assert [one.code for one in preflight(spec, {"train.py": OLD})] == ["tensorflow_1"], line


def test_a_script_that_imports_from_its_own_package_is_to_be_run_as_a_module():
    files = {"package/net/train.py": "import os\nfrom .model import build\n", "package/net/model.py": ""}
    (found,) = preflight(make_spec(SINGLE, entry_point="package/net/train.py"), files)
    assert (found.code, found.file, found.line) == ("relative_import", "package/net/train.py", 2)
    assert found.fixes == (Fix("Run -m package.net.train", "entry_point", "-m package.net.train"),)
    assert preflight(make_spec(SINGLE, entry_point="-m package.net.train"), files) == []


def test_where_no_module_helps_the_dot_is_to_go():
    files = {"train.py": "from .model import build\n", "a/train.py": "from ..model import build\n", "model.py": ""}
    for entry_point in ("train.py", "a/train.py"):
        (found,) = preflight(make_spec(SINGLE, entry_point=entry_point), files)
        assert (found.code, found.fixes) == ("relative_import", ())
        assert "without the leading dot" in found.remedy


def test_a_relative_import_that_may_fail_or_is_elsewhere_is_no_trouble():
    either = "try:\n    from .model import build\nexcept ImportError:\n    from model import build\n"
    files = {"a/train.py": either, "a/model.py": "from . import x\n", "a/x.py": ""}
    assert preflight(make_spec(SINGLE, entry_point="a/train.py"), files) == []


def test_a_command_gets_no_flags_so_a_strict_parser_is_no_trouble():
    script = "import argparse\np = argparse.ArgumentParser()\np.add_argument('--x')\np.parse_args()\n"
    command = make_spec(SINGLE, entry_point="", command="python train.py", paths=USUAL_PATHS)
    assert preflight(command, {"train.py": script}) == []
    assert preflight(make_spec(SINGLE, paths=USUAL_PATHS), {"train.py": script}) != []


def test_of_a_command_that_runs_no_file_of_the_code_nothing_is_said():
    assert preflight(make_spec(SINGLE, entry_point="", command="./run.sh"), {"train.py": OLD}) == []


def test_tensorflow_1_code_is_offered_its_mode_and_in_that_mode_only_what_is_gone_is_said():
    script = "import tensorflow as tf\ntf.placeholder(tf.float32)\ntf.contrib.layers.fully_connected\n"
    found = preflight(make_spec(SINGLE), {"train.py": script})
    assert [one.code for one in found] == ["tensorflow_1", "tensorflow_gone"]
    assert "tf1: true" in found[0].remedy
    (found,) = preflight(make_spec(SINGLE, tf1=True), {"train.py": script})
    assert (found.code, found.line) == ("tensorflow_gone", 3)


def test_removed_modules_are_found_where_they_are_imported():
    for line in ("from tensorflow.contrib import slim", "from tensorflow.examples.tutorials.mnist import input_data"):
        (found,) = preflight(make_spec(SINGLE), {"train.py": line + "\n"})
        assert found.code == "tensorflow_gone", line
