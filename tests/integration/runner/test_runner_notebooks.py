"""Notebooks in the place of a script: what cells see, what the log shows, what is kept, how they end."""

from __future__ import annotations

import json
import sys

import pytest

from tests.real.scene import until
from yardmaster_runner.pack import pack


def code(source: str, *tags: str) -> dict:
    return {
        "cell_type": "code",
        "source": source,
        "metadata": {"tags": list(tags)},
        "outputs": [],
        "execution_count": 9,
    }


def text(source: str) -> dict:
    return {"cell_type": "markdown", "source": [source], "metadata": {}}


@pytest.fixture
def orders(portal):
    """Orders the task to run a notebook of these cells."""

    def order(*cells: dict | str, path: str = "books/train.ipynb", raw: bytes | None = None, **changes: object) -> None:
        book = {"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": {"name": "python3"}}}
        book["cells"] = [code(one) if isinstance(one, str) else one for one in cells]
        portal.orders("", entry_point=path, **changes)
        content = json.dumps(book).encode() if raw is None else raw
        portal.order["code"]["files"] = [portal.add_file(path, content), portal.add_file("top.py", b"HERE = 1\n")]

    return order


def lines(portal) -> list[str]:
    return [line.decode() for line in portal.lines()]


def kept(task, name: str = "train.ipynb") -> list[dict]:
    """The cells of the executed notebook."""
    return json.loads((task.work / "log" / "notebooks" / name).read_text())["cells"]


def test_the_cells_run_in_order_in_one_name_space_and_their_output_is_in_the_log_and_kept(task, portal, orders):
    orders(
        text("# Title"),
        "import os, sys\nfrom top import HERE\nx = 2",
        "",
        "print('seen', x, __name__, os.path.basename(os.getcwd()), sys.argv[1:])\nx + HERE",
        "x;",
        spec_arguments=["--steps", "3"],
    )
    assert task.run() == 0, lines(portal)
    assert lines(portal) == [
        "[cell 1/3] import os, sys",
        "[cell 2/3] print('seen', x, __name__, os.path.basename(os.getcwd()), sys.argv[1:])",
        "seen 2 __main__ code ['--steps', '3']",
        "3",
        "[cell 3/3] x;",
    ]
    title, first, empty, second, third = kept(task)
    assert title["source"] == ["# Title"]
    assert [one["execution_count"] for one in (first, empty, second, third)] == [1, None, 2, 3]
    stream, result = second["outputs"]
    assert stream == {"output_type": "stream", "name": "stdout", "text": "seen 2 __main__ code ['--steps', '3']\n"}
    assert (result["output_type"], result["data"], result["execution_count"]) == (
        "execute_result",
        {"text/plain": "3"},
        2,
    )
    assert third["outputs"] == []
    assert any("notebooks/train.ipynb" in str(one) for one in portal.uploads.values())


def test_parameters_come_behind_the_cell_that_is_tagged_so(task, portal, orders):
    orders(
        code("rate, name, deep = 1, 'a', False", "parameters"),
        code("rate = 7", "injected-parameters"),
        "print(rate, repr(name), deep)",
        spec_parameters={"rate": 0.5, "name": "it's \n", "deep": True},
    )
    assert task.run() == 0, lines(portal)
    assert lines(portal)[-1] == "0.5 " + repr("it's \n") + " True"
    assert [one["metadata"]["tags"] for one in kept(task)] == [["parameters"], ["injected-parameters"], []]


def test_without_such_a_cell_they_come_first(task, portal, orders):
    orders("print(rate)", spec_parameters={"rate": 3})
    assert task.run() == 0
    assert lines(portal) == ["[parameters] train.ipynb", "[cell 1/1] print(rate)", "3"]


def test_a_cell_that_fails_ends_the_task_with_its_traceback_and_the_notebook_is_kept(task, portal, orders):
    orders("print('fine')", "def fail():\n    raise ValueError('the reason')\n\nfail()", "print('never')")
    assert task.run() == 1
    assert "ValueError: the reason" in portal.reports[-1]["message"]
    said = lines(portal)
    assert 'File "train.ipynb, cell 2", line 4, in <module>' in "\n".join(said)
    assert "    raise ValueError('the reason')" in said
    assert not any("in_script" in line or line == "never" for line in said)
    first, second, third = kept(task)
    assert first["outputs"][0]["text"] == "fine\n"
    assert (second["outputs"][0]["ename"], second["outputs"][0]["evalue"]) == ("ValueError", "the reason")
    assert (third["execution_count"], third["outputs"]) == (None, [])


@pytest.mark.parametrize(
    ("source", "exit_code"),
    [("import sys\nsys.exit(3)", 3), ("raise SystemExit", 0), ("x = (", 1), ("%nonsense x", 1), ("!exit 4", 0)],
)
def test_how_a_cell_ends_the_task(task, portal, orders, source, exit_code):
    orders(source)
    assert task.run() == exit_code, lines(portal)


def test_a_cell_that_may_fail_does_not_end_it(task, portal, orders):
    orders(code("1 / 0", "raises-exception"), "print('after')")
    assert task.run() == 0
    assert lines(portal)[-1] == "after"


def test_magics_and_shell_lines_do_what_they_do_in_jupyter(task, portal, orders):
    orders(
        "%matplotlib inline\nword = 'value'\n!echo out {word} $word\nfound = !printf 'a\\nb'\nprint(found)",
        "%%writefile made.txt\n%not a magic\n",
        "%%bash\ncat made.txt",
        "%%time\nprint('timed')",
        'text = """\n%kept\n"""\nprint(text.strip())',
        "import IPython\nfrom IPython.display import display, clear_output, HTML\nprint('gone')\nclear_output()\n"
        "display(HTML('<b>x</b>'))",
        "import asyncio\nawait asyncio.sleep(0)\nprint('awaited')",
    )
    assert task.run() == 0, lines(portal)
    said = [line for line in lines(portal) if not line.startswith("[cell")]
    assert said[:4] == ["out value value", "['a', 'b']", "%not a magic", "timed"]
    assert said[4:6] == ["%kept", "gone"]
    assert said[-1] == "awaited"
    (shown,) = kept(task)[5]["outputs"]
    assert shown["data"]["text/html"] == "<b>x</b>"


def test_a_bar_that_is_redrawn_is_kept_as_it_was_last(task, portal, orders):
    orders("import sys\nfor n in range(2000):\n    sys.stdout.write('\\r%d/1999' % n)\nprint()")
    assert task.run() == 0
    assert kept(task)[0]["outputs"][0]["text"].strip("\r\n") == "1999/1999"


def test_endless_output_is_kept_up_to_a_limit(task, portal, orders):
    orders("for n in range(60_000):\n    print('%09d' % n)")
    assert task.run() == 0
    (stream,) = kept(task)[0]["outputs"]
    assert len(stream["text"]) < 300_000
    assert "The rest is in the log" in stream["text"]


def test_pictures_are_kept_as_png(task, portal, orders):
    orders("class Picture:\n    def _repr_png_(self):\n        return b'\\x89PNG...'\nPicture()")
    assert task.run() == 0
    assert kept(task)[0]["outputs"][0]["data"]["image/png"] == "iVBORy4uLg=="


def test_a_stop_ends_it_as_it_ends_a_script_and_what_it_printed_before_is_kept(task, portal, orders):
    orders("print('ready', flush=True)\nimport time\ntime.sleep(60)")
    process = task.start()
    place = task.work / "log" / "notebooks" / "train.ipynb"
    until(lambda: place.exists() and "ready" in str(json.loads(place.read_text())["cells"][0]["outputs"]))
    process.terminate()
    process.communicate(timeout=60)
    assert portal.reports[-1]["exit_code"] == 143


def test_only_the_task_that_decides_keeps_it(task, portal, orders):
    task.variables["YARDMASTER_INDEX"] = "1"
    task.variables["YARDMASTER_CLUSTER"] = json.dumps({"worker": ["127.0.0.1:1", "127.0.0.1:2"]})
    orders("print('ran')", spec_strategy="multi_worker_mirrored", spec_roles={"worker": {"replicas": 2}})
    assert task.run() == 0
    assert portal.logs["worker-1"].endswith(b"ran\n")
    assert not (task.work / "log" / "notebooks").exists()


def test_of_independent_tasks_each_keeps_its_own(task, portal, orders):
    task.variables["YARDMASTER_INDEX"] = "1"
    orders("print('ran')", spec_strategy="batch", spec_roles={"worker": {"replicas": 2}})
    assert task.run() == 0
    assert kept(task, "train.worker-1.ipynb")


def test_the_packed_runner_has_all_that_a_notebook_needs(task, portal, orders, tmp_path):
    archive = tmp_path / "yardmaster_runner.pyz"
    pack(str(archive))
    orders("x = 6\nx * 7")
    task.variables["PYTHONPATH"] = ""
    assert task.run(sys.executable, "-I", "-S", str(archive)) == 0, lines(portal)
    assert lines(portal)[-1] == "42"


def test_what_is_no_notebook_is_named_with_what_to_do(task, portal, orders):
    orders(raw=b'{"nbformat": 3, "worksheets": []}')
    assert task.run() == 1
    assert "It is of notebook format 3" in lines(portal)[-1]
    assert "jupyter nbconvert" in lines(portal)[-1]


def test_tensorflow_1_mode_holds_in_cells(task, portal, orders, tmp_path):
    modules = {
        "__init__": "from tensorflow import compat",
        "compat/__init__": "from tensorflow.compat import v1",
        "compat/v1/__init__": "placeholder = 1\ndef disable_v2_behavior(): pass",
    }
    for path, source in modules.items():
        place = tmp_path / "libraries" / "tensorflow" / f"{path}.py"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(source)
    orders("import tensorflow as tf\nprint(tf.placeholder)", spec_tf1=True)
    task.variables["PYTHONPATH"] = f"{task.environment()['PYTHONPATH']}:{tmp_path / 'libraries'}"
    assert task.run() == 0, lines(portal)
    assert lines(portal)[-1] == "1"
