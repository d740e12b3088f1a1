"""What preflight finds in scripts as people write them, and, as much, what it leaves alone."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.core.generators import DATA, make_spec
from yardmaster.code.findings import Finding, Fix, Severity
from yardmaster.code.preflight import preflight
from yardmaster.code.script_facts import read_script
from yardmaster.job.spec import USUAL_PATHS, DatasetInput, InputMode, Paths, Strategy

BG, PS, MW, SINGLE = (
    Strategy.BETWEEN_GRAPH,
    Strategy.PARAMETER_SERVER,
    Strategy.MULTI_WORKER_MIRRORED,
    Strategy.SINGLE,
)
DIGITS = Path(__file__).parents[3] / "examples" / "digits"


def find(strategy: Strategy, script: str, others: dict[str, str] | None = None, **fields: Any) -> list[Finding]:
    """But for packages of which the environment lacks some: the scripts are not run."""
    found = preflight(make_spec(strategy, **fields), {"train.py": dedent(script), **(others or {})})
    return [one for one in found if one.code != "missing_package"]


def codes(strategy: Strategy, script: str, **fields: Any) -> list[str]:
    return [one.code for one in find(strategy, script, **fields)]


# Scripts that are right. Each is a whole one, as in tutorials and in use.

KERAS_PS = """
    import argparse, json, os
    import tensorflow as tf

    parser = argparse.ArgumentParser()
    parser.add_argument("--data_dir", default="/home/me/data")
    parser.add_argument("--log_dir", default="gs://bucket/logs")
    args = parser.parse_args()

    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if resolver.task_type in ("worker", "ps"):
        server = tf.distribute.Server(
            resolver.cluster_spec(), job_name=resolver.task_type, task_index=resolver.task_id, protocol="grpc"
        )
        server.join()
    else:
        strategy = tf.distribute.ParameterServerStrategy(resolver)
        with strategy.scope():
            model = tf.keras.Sequential([tf.keras.layers.Dense(10)])
            model.compile("sgd", "mse")
        model.fit(tf.keras.utils.experimental.DatasetCreator(make), epochs=3, steps_per_epoch=20)
"""
KERAS_MW = """
    import os
    import tf_keras as keras
    import tensorflow as tf
    from sklearn.preprocessing import StandardScaler

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    data = os.environ.get("DATA_DIR", "/content/drive/My Drive/data")
    scaler = StandardScaler().fit([[1.0]])
    with strategy.scope():
        model = keras.Sequential()
        model.compile("adam", "mse")
    model.fit(x, y, epochs=2, callbacks=[keras.callbacks.BackupAndRestore(os.environ["LOG_DIR"])])
    print("s3:// paths are not supported, see gs://docs")
"""
CLASSIC = """
    import tensorflow.compat.v1 as tf
    tf.disable_v2_behavior()
    flags = tf.app.flags
    flags.DEFINE_string("ps_hosts", "", "")
    flags.DEFINE_string("worker_hosts", "", "")
    flags.DEFINE_string("job_name", "", "")
    flags.DEFINE_integer("task_index", 0, "")
    flags.DEFINE_string("data_dir", "/home/me/mnist", "")
    flags.DEFINE_string("log_dir", None, "")
    FLAGS = flags.FLAGS

    def main(_):
        cluster = tf.train.ClusterSpec({"ps": FLAGS.ps_hosts.split(","), "worker": FLAGS.worker_hosts.split(",")})
        server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
        if FLAGS.job_name == "ps":
            server.join()
        config = tf.ConfigProto(device_filters=["/job:ps", "/job:worker/task:%d" % FLAGS.task_index])
        with tf.train.MonitoredTrainingSession(master=server.target, config=config) as session:
            session.run(step)

    if __name__ == "__main__":
        tf.app.run()
"""
PLAIN = '''
    """Reads s3://nothing and /content/nothing."""
    import tensorflow as tf, sys

    def layer(input):
        return input

    def main(argv):
        """C:\\\\nothing here either."""
        model = tf.keras.Sequential()
        model.fit([1], [2])

    main(sys.argv)
'''


@pytest.mark.parametrize(
    ("strategy", "script"),
    [(PS, KERAS_PS), (MW, KERAS_MW), (BG, CLASSIC), (SINGLE, PLAIN)],
    ids=["ps", "mw", "bg", "one"],
)
def test_a_script_that_is_right_gives_no_finding(strategy: Strategy, script: str) -> None:
    assert find(strategy, script) == []


@pytest.mark.parametrize("strategy", [one for one in Strategy if (DIGITS / f"{one}.py").exists()])
def test_the_examples_give_no_finding(strategy: Strategy) -> None:
    files = {path.name: path.read_text() for path in DIGITS.glob("*.py")}
    spec = make_spec(strategy, entry_point=f"{strategy.value}.py", inputs=(DatasetInput(DATA),))
    assert preflight(spec, files) == []


# Errors: it cannot work.


def test_a_missing_entry_point_is_an_error_that_guesses_what_was_meant() -> None:
    spec = make_spec(entry_point="train.py")
    (found,) = preflight(spec, {"src/train.py": "", "README.md": ""})
    assert (found.severity, found.code) == (Severity.ERROR, "entry_point_missing")
    assert "src/train.py" in found.remedy
    (found,) = preflight(spec, {"trian.py": ""})
    assert "trian.py" in found.remedy
    (found,) = preflight(spec, {})
    assert "top of the code" in found.remedy


@pytest.mark.parametrize(
    ("script", "code", "line"),
    [
        ("x = 1\nif x\n    pass\n", "syntax_error", 2),
        ("import os\n!pip install tensorflow\n", "notebook_magic", 2),
        ("%matplotlib inline\nimport os\n", "notebook_magic", 1),
        ("x = 1\nprint 'hello'\n", "syntax_error", 2),
        ("x = 1\0", "syntax_error", 1),
        ("-" * 100_000 + "1", "syntax_error", 1),
        ("(" * 10_000, "syntax_error", 1),
    ],
)
def test_what_python_cannot_read_is_an_error_with_its_line(script: str, code: str, line: int) -> None:
    (found,) = find(SINGLE, script)
    assert (found.severity, found.code, found.file, found.line) == (Severity.ERROR, code, "train.py", line)


def test_an_error_in_a_module_that_the_script_imports_is_found_and_one_in_another_file_is_not() -> None:
    script = "from package import model\nfrom .sibling import x\n"
    others = {
        "package/__init__.py": "from . import model",
        "package/model.py": "x =",
        "other.py": "x =",
        "sibling.py": "",
    }
    found = find(SINGLE, script, others)
    assert [(one.code, one.file) for one in found] == [
        ("syntax_error", "package/model.py"),
        ("relative_import", "train.py"),
    ]


# Warnings: it will most likely not work as meant.


@pytest.mark.parametrize("strategy", [PS, MW])
def test_keras_3_under_the_strategies_that_it_cannot_train_with(strategy: Strategy) -> None:
    make = "tf.distribute.ParameterServerStrategy(r)\ntf.distribute.Server(c).join()\n"
    make += "tf.distribute.MultiWorkerMirroredStrategy()"
    script = f"import tensorflow as tf\nimport keras\n{make}\nmodel = keras.Model()\nmodel.fit(x, steps_per_epoch=1)\n"
    (found,) = find(strategy, script)
    assert (found.code, found.file, found.line) == ("keras_3", "train.py", 2)
    assert "tf_keras" in found.remedy
    assert find(strategy, script.replace("import keras", "import tf_keras as keras")) == []
    assert find(strategy, script.replace("import keras", "from tensorflow import keras")) == []
    assert codes(
        strategy,
        script.replace("import keras", "from tensorflow import keras"),
        environment={"TF_USE_LEGACY_KERAS": "0"},
    ) == ["keras_3"]


def test_keras_3_is_fine_where_it_works() -> None:
    assert find(SINGLE, "import keras\nmodel = keras.Model()\nmodel.fit(x)\n") == []


def test_a_parameter_server_script_without_chief_or_server() -> None:
    assert codes(PS, "import tensorflow as tf\n") == ["no_coordinator", "no_server"]
    no_join = KERAS_PS.replace("server.join()", "pass")
    assert codes(PS, no_join) == ["no_join"]
    assert codes(PS, KERAS_PS.replace(", steps_per_epoch=20", "")) == ["no_steps_per_epoch"]


def test_the_branches_may_be_in_a_module_of_the_same_code() -> None:
    assert (
        find(PS, "from app import main\nmain.run()\n", {"app/main.py": dedent(KERAS_PS), "app/__init__.py": ""}) == []
    )


def test_a_collective_job_without_its_strategy() -> None:
    assert codes(MW, "import tensorflow as tf\nmodel.fit(x)\n") == ["no_strategy"]


def test_a_between_graph_script_that_does_not_know_its_place() -> None:
    assert codes(BG, "import tensorflow as tf\nprint('training')\n") == ["no_cluster"]


def test_a_between_graph_session_that_would_wait_for_finished_workers() -> None:
    script = CLASSIC.replace('device_filters=["/job:ps", "/job:worker/task:%d" % FLAGS.task_index]', "")
    assert codes(BG, script) == ["no_device_filters"]
    assert codes(BG, script, retries=0) == []


STRICT = """
    import argparse
    parser = argparse.ArgumentParser()
    parser.add_argument("--log_dir")
    parser.add_argument("-s", "--steps", type=int, default=5)
    args = parser.parse_args()
"""


def test_a_strict_parser_that_does_not_know_the_flag_for_the_data() -> None:
    (found,) = find(SINGLE, STRICT, paths=USUAL_PATHS)
    assert found.code == "unknown_flag"
    assert 'paths.data_flag to ""' in found.remedy
    assert found.fixes == (Fix("Pass what the parser knows", "paths.data_flag", "auto"),)
    assert find(SINGLE, STRICT) == []
    assert find(SINGLE, STRICT.replace("parse_args()", "parse_known_args()[0]"), paths=USUAL_PATHS) == []
    assert find(SINGLE, STRICT.replace("parse_args()", "parse_args([])"), paths=USUAL_PATHS) == []
    assert codes(SINGLE, STRICT, paths=Paths("--log_dir", "", "--out")) == ["unknown_flag"]


def test_a_strict_parser_whose_flags_cannot_be_told_is_left_alone() -> None:
    script = STRICT + "    for name in names:\n        parser.add_argument(name)\n"
    assert find(SINGLE, script, paths=USUAL_PATHS) == []


def test_a_strict_parser_under_between_graph_must_know_the_classic_flags() -> None:
    script = STRICT + '    parser.add_argument("--data_dir")\n    os.environ["TF_CONFIG"]\n'
    (found,) = find(BG, script)
    assert found.code == "unknown_flag"
    assert "--ps_hosts, --worker_hosts, --job_name, --task_index" in found.message
    assert codes(BG, CLASSIC.replace('flags.DEFINE_string("ps_hosts", "", "")', "")) == ["unknown_flag"]


def test_a_flag_that_is_given_twice() -> None:
    given = ("--data_dir=/mnt", "--x")
    assert codes(SINGLE, "import os\n", arguments=given, paths=USUAL_PATHS) == ["doubled_flag"]
    assert codes(SINGLE, "import os\n", arguments=given) == []
    assert codes(SINGLE, "import os\n", arguments=("--data_dir=/mnt",), paths=Paths(data_flag="")) == []


@pytest.mark.parametrize(
    "path",
    [
        "/content/drive/My Drive/x.csv",
        "/kaggle/input/digits/train.csv",
        "C:\\\\Users\\\\me\\\\x.csv",
        "D:/data/x.csv",
        "/home/me/data",
        "/Users/me/data",
        "~/data",
        "gs://bucket/x",
        "hdfs://host/x",
        "dbfs:/x",
    ],
)
def test_a_path_of_another_machine_leads_nowhere(path: str) -> None:
    (found,) = find(SINGLE, f'import pandas\nx = pandas.read_csv("{path}")\n')
    assert (found.severity, found.code, found.line) == (Severity.WARNING, "foreign_path", 2)
    assert "$DATA_DIR" in found.remedy
    (found,) = find(SINGLE, f'import pandas\nx = pandas.read_csv("{path}")\n', paths=USUAL_PATHS)
    assert "--data_dir" in found.remedy


def test_an_s3_path_that_tensorflow_would_open_itself_is_told_what_to_write_instead() -> None:
    script = 'import pandas, tensorflow as tf\nx = tf.data.TFRecordDataset(["s3://bucket/x.tfrecord"])\n'
    (found,) = find(SINGLE, script, inputs=(DatasetInput(DATA),))
    assert (found.severity, found.code, found.line) == (Severity.WARNING, "s3_path", 2)
    assert "tf.data.TFRecordDataset opens s3://bucket/x.tfrecord itself" in found.message
    assert 'yardmaster_runner.data.dataset("NAME")' in found.remedy
    (found,) = find(SINGLE, 'import tensorflow as tf\npath = "s3a://bucket/x"\n', inputs=(DatasetInput(DATA),))
    assert found.code == "s3_path"


def test_an_input_that_is_streamed_and_not_asked_for_is_told() -> None:
    one = DatasetInput(DATA, "reviews", InputMode.STREAM)
    (found,) = find(SINGLE, "import os\nos.listdir('data')\n", inputs=(one,))
    assert (found.severity, found.code) == (Severity.WARNING, "stream_unread")
    assert 'yardmaster_runner.data.dataset("reviews")' in found.remedy
    script = "from yardmaster_runner import data\ntrain = data.dataset('reviews')\n"
    assert find(SINGLE, script, inputs=(one,)) == []


def test_an_s3_path_read_through_fsspec_is_mapped_where_the_job_has_inputs() -> None:
    script = 'import pandas\nx = pandas.read_csv("s3://bucket/x.csv")\n'
    assert find(SINGLE, script, inputs=(DatasetInput(DATA),)) == []
    (found,) = find(SINGLE, script)
    assert found.code == "s3_path"
    assert "maps to no input" in found.message


def test_an_s3_path_is_compared_with_what_the_inputs_stand_for() -> None:
    one = DatasetInput(DATA, "reviews", stands_for="s3://theirs/data/")
    script = 'import pandas\nx = pandas.read_csv("{}")\n'
    for path in ("s3://theirs/data/x.csv", "s3a://theirs/data", "s3://theirs/", "s3://"):
        assert find(SINGLE, script.format(path), inputs=(one,)) == []
    (found,) = find(SINGLE, script.format("s3://theirs/database/x.csv"), inputs=(one,))
    assert (found.code, found.line) == ("s3_path", 2)
    assert "stands for this path (stands_for)" in found.remedy
    script = 'import pandas, tensorflow as tf\nx = tf.data.TFRecordDataset("s3://theirs/data/x.tfrecord")\n'
    (found,) = find(SINGLE, script, inputs=(one,))
    assert found.remedy == 'Write yardmaster_runner.data.dataset("reviews"), or read the input below $DATA_DIR.'


@pytest.mark.parametrize(
    "path", ["data/x.csv", "/tmp/x", "/data/x", "http://host/x", "c:", "a:b", "home/x", "x s3://y"]
)
def test_an_ordinary_path_is_left_alone(path: str) -> None:
    assert find(SINGLE, f'x = open("{path}")\n') == []


def test_a_path_in_a_call_within_a_print_is_worked_with() -> None:
    assert codes(SINGLE, 'import os\nprint(os.listdir("/kaggle/input"))\n') == ["foreign_path"]
    assert codes(SINGLE, 'print("was in {}".format("/kaggle/input"))\n') == []


@pytest.mark.parametrize("path", ["/kaggle/working/model", "/opt/ml/model", "/opt/ml/output/data"])
def test_a_place_for_results_on_another_platform_is_told_ours(path: str) -> None:
    (found,) = find(SINGLE, f'model.save("{path}")\n')
    assert found.code == "foreign_path"
    assert found.remedy == "Write it below MODEL_DIR."


def test_variables_of_another_platform_are_told_once_unless_the_job_sets_them() -> None:
    script = 'import os\na = os.environ["SM_CHANNEL_TRAINING"]\nb = os.environ.get("SM_MODEL_DIR")\nc = "SM"\n'
    (found,) = find(SINGLE, script)
    assert (found.code, found.line) == ("foreign_variable", 2)
    assert found.message.startswith("SM_CHANNEL_TRAINING, SM_MODEL_DIR:")
    assert codes(SINGLE, script, environment={"SM_CHANNEL_TRAINING": "x", "SM_MODEL_DIR": "y"}) == []


def test_many_foreign_paths_are_not_all_listed() -> None:
    assert len(find(SINGLE, "\n".join(f'open("/kaggle/input/{n}")' for n in range(50)))) == 5


def test_a_default_that_the_job_replaces_is_no_path_of_the_job() -> None:
    script = 'parser.add_argument("--out", default="/home/me/out", help="as /home/me/out")\n'
    assert codes(SINGLE, script) == ["foreign_path"]
    assert codes(SINGLE, script, arguments=("--out=x",)) == []


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("import tensorflow as tf\nwith tf.Session() as s: pass\n", "tensorflow_1"),
        ("import tensorflow as tf\ns = tf.train.MonitoredTrainingSession()\n", "tensorflow_1"),
        ("import tensorflow_io as tfio\n", "tensorflow_io"),
        ("from google.colab import drive\n", "notebook_only"),
        ("get_ipython().system('ls')\n", "notebook_only"),
        ("name = input('name? ')\n", "asks_for_input"),
    ],
)
def test_what_does_not_work_in_a_task(script: str, code: str) -> None:
    assert codes(SINGLE, script) == [code]


@pytest.mark.parametrize(
    "script",
    [
        "import tensorflow.compat.v1 as tf\ntf.Session()\n",
        "import tensorflow as tf\ntf.compat.v1.Session()\n",
        "import tensorflow as tf\ntf1 = tf.compat.v1\ntf1.Session()\n",
        "def f(input):\n    return input()\n",
        "import warnings\nx = '\\d'\n",
        "",
    ],
)
def test_what_only_looks_like_it_is_left_alone(script: str) -> None:
    assert find(SINGLE, script) == []


def test_errors_come_first_then_the_order_of_the_code() -> None:
    script = "import broken\nx = input()\nopen('/kaggle/x')\n"
    found = find(SINGLE, script, {"broken.py": "x ="})
    assert [one.code for one in found] == ["syntax_error", "asks_for_input", "foreign_path"]
    assert all(one.message and one.remedy for one in found)


def test_a_huge_generated_file_is_not_read() -> None:
    assert read_script({"a.py": "x = 1\n" * 300_000}, "a.py").names == {}


def test_modules_that_import_each_other_are_read_once() -> None:
    files = {"a.py": "import b", "b.py": "import a\nimport b"}
    assert set(read_script(files, "a.py").imports) == {"a", "b"}


@given(st.sampled_from(Strategy), st.text(max_size=80))
def test_any_text_is_read_without_harm(strategy: Strategy, script: str) -> None:
    preflight(make_spec(strategy), {"train.py": script})


_pieces = st.lists(
    st.sampled_from([line for text in (KERAS_PS, KERAS_MW, CLASSIC, STRICT) for line in dedent(text).splitlines()])
)


@given(st.sampled_from(Strategy), _pieces)
def test_any_mixture_of_lines_is_read_without_harm(strategy: Strategy, lines: list[str]) -> None:
    for one in preflight(make_spec(strategy), {"train.py": "\n".join(lines)}):
        assert one.message
        assert one.remedy
