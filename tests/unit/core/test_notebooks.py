"""Notebooks before a launch and after it: what is found in their cells, and what of them may be shown."""

from __future__ import annotations

import base64
import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.core.generators import make_spec
from yardmaster.code.findings import Finding, Severity
from yardmaster.code.preflight import preflight
from yardmaster.formats.notebook import MOST_CELLS, MOST_TEXT, read_shown
from yardmaster.job.spec import Strategy
from yardmaster_runner.in_script.notebook_cells import LARGEST, NotANotebook, as_python, read

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n rest").decode()


def book(*sources: str, **changes: object) -> str:
    cells = [{"cell_type": "code", "source": one, "metadata": {}, "outputs": []} for one in sources]
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells} | changes)


def find(text: str, **fields: object) -> list[Finding]:
    spec = make_spec(Strategy.SINGLE, entry_point="book.ipynb", **fields)
    return preflight(spec, {"book.ipynb": text, "net.py": "import tensorflow as tf\ntf.Session()\n"})


def test_what_is_found_in_a_cell_is_said_with_the_cell_and_its_line():
    (found,) = find(book("x = 1\ny = 2", "import tensorflow as tf\n\ntf.placeholder(tf.float32)"))
    assert (found.code, found.file, found.line) == ("tensorflow_1", "book.ipynb, cell 2", 3)


def test_a_cell_that_is_no_python_is_an_error_with_its_place():
    (found,) = find(book("a = 1", "b = (\n"))
    assert (found.severity, found.code, found.file) == (Severity.ERROR, "syntax_error", "book.ipynb, cell 2")


def test_what_a_notebook_imports_of_the_code_is_read_too():
    (found,) = find(book("import net"))
    assert (found.code, found.file, found.line) == ("tensorflow_1", "net.py", 2)


def test_magics_that_tasks_have_are_no_trouble_and_others_are_named():
    assert find(book("%matplotlib inline\n!ls\nfiles = !ls\n?print\nprint?", "%%bash\necho (", "%%time\nx = 1")) == []
    found = find(book("%%sql\nselect 1", "x = 1\n%lprun x\n!pip install a\n%pip install b"))
    assert [(one.code, one.file, one.line) for one in found] == [
        ("magic_unknown", "book.ipynb, cell 1", 1),
        ("magic_unknown", "book.ipynb, cell 2", 2),
        ("installs_packages", "book.ipynb, cell 2", 3),
        ("installs_packages", "book.ipynb, cell 2", 4),
    ]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("print(1)", "bad_notebook"),
        ("[" * 100_000, "bad_notebook"),
        ("{}", "bad_notebook"),
        ('{"nbformat": 4}', "bad_notebook"),
        ('{"nbformat": 4, "cells": [1]}', "bad_notebook"),
        ('{"nbformat": 4, "cells": [{"cell_type": "code", "source": [1]}]}', "bad_notebook"),
        ('{"nbformat": 4, "cells": ' + json.dumps([{"cell_type": "raw"}] * 6000) + "}", "bad_notebook"),
        ('{"nbformat": 3, "worksheets": []}', "old_notebook"),
        (book(metadata={"kernelspec": {"name": "ir", "language": "R"}}), "other_kernel"),
        (book(metadata={"language_info": {"name": "julia"}}), "other_kernel"),
        (book("x" * LARGEST), "notebook_too_large"),
    ],
)
def test_a_notebook_that_cannot_run_is_an_error_with_a_remedy(text: str, code: str):
    (found,) = find(text)
    assert (found.severity, found.code, found.file) == (Severity.ERROR, code, "book.ipynb")
    assert found.remedy


def test_kernels_of_python_are_known_by_any_name():
    for kernel in ({}, {"name": "python3"}, {"name": "tf-gpu", "language": "python"}, {"language": "Python"}):
        assert find(book("x = 1", metadata={"kernelspec": kernel})) == []


@given(st.text(max_size=60))
def test_the_source_of_a_cell_keeps_its_lines_and_nothing_breaks_it(source: str):
    assert as_python(source).count("\n") == source.count("\n")
    find(book(source))


@given(
    st.recursive(
        st.none() | st.text(max_size=9) | st.integers(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.sampled_from(
                    ["nbformat", "cells", "cell_type", "source", "metadata", "tags", "kernelspec", "outputs"]
                ),
                inner,
            )
        ),
    )
)
def test_any_json_is_a_notebook_or_is_refused(value: object):
    with contextlib.suppress(NotANotebook):
        assert read(json.dumps(value))["nbformat"] == 4


# --- shown -----------------------------------------------------------------------------------------------------------


def shown(tmp_path: Path, *outputs: object, source: object = "x") -> list[dict]:
    cell = {"cell_type": "code", "source": source, "execution_count": 3, "metadata": {}, "outputs": list(outputs)}
    place = tmp_path / "book.ipynb"
    place.write_text(json.dumps({"nbformat": 4, "cells": [cell]}))
    (found,) = read_shown(str(place))["cells"]
    return found["outputs"]


def test_texts_errors_and_pictures_are_shown(tmp_path: Path):
    found = shown(
        tmp_path,
        {"output_type": "stream", "name": "stdout", "text": ["1\r2\r", "3\n", "\x1b[31mred\x1b[0m"]},
        {"output_type": "execute_result", "data": {"text/plain": "42", "text/html": "<b>42</b>"}},
        {"output_type": "display_data", "data": {"text/plain": "<Figure>", "image/png": PNG}},
        {"output_type": "error", "ename": "E", "evalue": "v", "traceback": ["a", "E: v"]},
    )
    assert [(one["kind"], one["text"]) for one in found] == [
        ("text", "3\nred"),
        ("text", "42"),
        ("picture", PNG),
        ("error", "a\nE: v"),
    ]


@pytest.mark.parametrize(
    "data",
    [
        {"text/html": "<script>alert(1)</script>"},
        {"application/javascript": "alert(1)"},
        {"image/svg+xml": "<svg onload=alert(1)>"},
        {"image/png": base64.b64encode(b"<svg onload=alert(1)>").decode()},
        {"image/png": '"><script>alert(1)</script>'},
        {"image/png": "A" * (3 << 20)},
        {"image/png": {"a": 1}},
        {},
    ],
)
def test_what_a_browser_would_run_is_a_note_alone(tmp_path: Path, data: dict):
    (found,) = shown(tmp_path, {"output_type": "display_data", "data": data})
    assert found["kind"] == "note"
    assert "alert" not in found["text"]


def test_what_is_shown_has_bounds(tmp_path: Path):
    assert len(shown(tmp_path, *[{"output_type": "stream", "text": "x"}] * 500)) == 51
    (found,) = shown(tmp_path, {"output_type": "stream", "text": "x" * 10**6})
    assert len(found["text"]) < MOST_TEXT + 100
    place = tmp_path / "many.ipynb"
    place.write_text(book(*["x"] * 2000))
    found = read_shown(str(place))
    assert (len(found["cells"]), found["left_out"]) == (MOST_CELLS, 2000 - MOST_CELLS)
    place.write_text(book(*["x" * 19_000] * 500))
    assert read_shown(str(place))["left_out"] > 0


@pytest.mark.parametrize("text", ["", "no", '{"nbformat": 3}', "[" * 10_000])
def test_what_is_no_notebook_is_a_problem(tmp_path: Path, text: str):
    place = tmp_path / "bad.ipynb"
    place.write_text(text)
    assert {"problem", "remedy"} == set(read_shown(str(place)))
