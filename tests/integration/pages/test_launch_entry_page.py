"""What to run, on the launch page: the choice, what a button changes, and what is launched."""

from __future__ import annotations

import pytest

from apps.code.models import CodeVersion
from apps.jobs.launch.forms import as_data, new_values
from apps.jobs.models import Job
from tests.integration.jobs.conftest import engine_settings, stores, world
from tests.integration.pages.test_launch_page import code, data, signed, value_of

__all__ = ["code", "data", "engine_settings", "signed", "stores", "world"]

pytestmark = pytest.mark.django_db


def test_what_to_run_is_a_choice_that_keeps_what_was_typed(signed, world, ada):
    world.code_version(ada, {"train.py": "", "package/net.py": "", "book.ipynb": "{}", "package/__init__.py": ""})
    values = new_values("single") | {"code": str(CodeVersion.objects.get().pk), "entry_point": "train.py"}

    def after(runs, **changes):
        sent = as_data(values | {"runs": runs, "take": "runs", **changes})
        return signed.post("/jobs/launch/", sent).content.decode()

    assert '<option value="-m package.net">' in (page := after("module"))
    assert value_of(page, "entry_point") == "-m package.net"
    assert "-m package" + '"' not in page
    assert value_of(after("notebook"), "entry_point") == "book.ipynb"
    assert 'for="f-entry_point">Module</label>' in page
    assert "python -m package.net</textarea>" in after("command", entry_point="-m package.net")
    assert "python train.py</textarea>" in (page := after("command"))
    assert value_of(page, "entry_point") == "train.py"
    assert value_of(after("file", command="make"), "entry_point") == "train.py"


def test_code_of_tensorflow_1_is_offered_its_mode_as_one_click(signed, world, ada, data):
    old = world.code_version(ada, {"train.py": "import tensorflow as tf\ntf.placeholder(tf.float32)\n"})
    sent = data | {"code": str(old.pk)}
    assert 'name="take" value="fix:tf1=true"' in signed.post("/jobs/launch/preview/", sent).content.decode()
    page = signed.post("/jobs/launch/", sent | {"take": "fix:tf1=true"}).content.decode()
    assert 'name="tf1" value="true" id="f-tf1" checked' in page
    assert 'value="fix:tf1=true"' not in page
    assert signed.post("/jobs/launch/", sent | {"tf1": "true"}).status_code == 302
    assert Job.objects.get().spec["tf1"] is True


def test_a_script_of_a_package_becomes_its_module_with_one_click(signed, world, ada, data):
    files = {"package/train.py": "from .net import build\n", "package/net.py": "build = 1\n"}
    sent = data | {"code": str(world.code_version(ada, files).pk), "runs": "file", "entry_point": "package/train.py"}
    button = "fix:entry_point=-m package.train"
    assert f'name="take" value="{button}"' in signed.post("/jobs/launch/preview/", sent).content.decode()
    page = signed.post("/jobs/launch/", sent | {"take": button}).content.decode()
    assert value_of(page, "entry_point") == "-m package.train"
    assert 'for="f-entry_point">Module</label>' in page
    assert button not in page


def test_a_command_is_launched(signed, data):
    sent = data | {"runs": "command", "command": "cd src\r\npython train.py"}
    assert signed.post("/jobs/launch/", sent).status_code == 302
    spec = Job.objects.get().spec
    assert (spec["command"], spec["entry_point"], spec["arguments"]) == ("cd src\npython train.py", "", [])
