"""The launch form: it works without a script, forgets nothing, and says what is wrong where it is wrong."""

from __future__ import annotations

import html
import json
import re
import uuid

import pytest
from django.test import Client

from apps.code.models import CodeVersion
from apps.datasets.models import Dataset, DatasetVersion
from apps.jobs.launch.forms import as_data
from apps.jobs.launch.spec_values import values_of_spec
from apps.jobs.models import Job
from apps.namespaces.models import Membership, Namespace, Quota, Role
from tests.integration.jobs.conftest import engine_settings, stores, world
from tests.integration.model_versions import job_of, version_of
from tests.integration.pages.form_of_page import form_of
from yardmaster.ids import new_id
from yardmaster.job.spec_stored import stored_spec

UNKNOWN = uuid.UUID("01900000-0000-7000-8000-000000000001")
__all__ = ["engine_settings", "stores", "world"]

pytestmark = pytest.mark.django_db
BOOK = json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": []})
HOSTILE = "</textarea><script>alert(1)</script>\u202e🚂" + "x" * 10_000


@pytest.fixture
def code(world, ada) -> CodeVersion:
    version = world.code_version(ada, {"train.py": "print(1)\n", "lib/model.py": "x = 1\n", "README.md": "hello\n"})
    version.parent.name = "digits"
    version.parent.save()
    return version


@pytest.fixture
def signed(client, ada) -> Client:
    client.force_login(ada)
    return client


@pytest.fixture
def data(code) -> dict[str, str]:
    """What a browser would send for two workers and a parameter server."""
    return {
        "form": "f1", "name": "digits", "strategy": "between_graph", "code": str(code.pk), "entry_point": "train.py",
        "roles-worker-replicas": "2", "roles-worker-cpu": "1", "roles-ps-replicas": "1",
        "arguments": "--steps=5\r\n--x", **rows("inputs"), **rows("environment"),
    }  # fmt: skip


def rows(prefix: str, *rows: dict[str, str]) -> dict[str, str]:
    """A formset as a browser sends it."""
    fields = {f"{prefix}-{n}-{key}": text for n, row in enumerate(rows) for key, text in row.items()}
    return {f"{prefix}-TOTAL_FORMS": str(len(rows)), f"{prefix}-INITIAL_FORMS": "0", **fields}


def dataset_version(ada) -> DatasetVersion:
    made = Dataset.objects.create(namespace=ada.personal_namespace, name="mnist")
    return DatasetVersion.objects.create(
        id=new_id(),
        parent=made,
        number=1,
        upload_id=new_id(),
        key_prefix="x",
        size=1,
        file_count=1,
        added=1,
        changed=0,
        removed=0,
    )


def value_of(page: str, name: str) -> str:
    """What stands in a field of the page."""
    found = re.search(rf'<input[^>]* name="{re.escape(name)}" value="([^"]*)"', page)
    return html.unescape(found[1]) if found else ""


class TestForm:
    def test_it_begins_with_what_is_likeliest(self, signed, code):
        page = signed.get("/jobs/launch/").content.decode()
        assert value_of(page, "name") == "digits"
        assert value_of(page, "entry_point") == "train.py"
        assert value_of(page, "roles-worker-replicas") == "1"
        assert 'value="single" id="preset-single" checked' in page
        assert '<option value="lib/model.py">' in page
        assert "README.md" not in page
        assert "yardmaster jobs launch /dev/stdin" in page
        assert "code: digits@1" in page

    def test_without_code_it_says_where_to_upload_some(self, world, signed):
        assert "There is no code yet" in signed.get("/jobs/launch/").content.decode()

    @pytest.mark.parametrize(
        ("preset", "roles"),
        [
            ("single", {"worker"}),
            ("between_graph", {"ps", "worker", "chief"}),
            ("parameter_server", {"ps", "worker", "chief", "evaluator"}),
            ("multi_worker_mirrored", {"worker", "chief", "evaluator"}),
        ],
    )
    def test_every_preset_has_a_form_of_its_own(self, signed, code, preset, roles):
        page = signed.get(f"/jobs/launch/?preset={preset}").content.decode()
        assert set(re.findall(r'name="roles-(\w+)-replicas"', page)) == roles

    def test_code_and_data_may_be_named_in_the_address(self, signed, ada, world, code):
        data = dataset_version(ada)
        other = world.code_version(ada, {"other.py": ""})
        page = signed.get(f"/jobs/launch/?code={code.parent_id}&dataset={data.parent_id}").content.decode()
        assert f'<option value="{code.pk}" selected>' in page
        assert f'<option value="{data.pk}" selected>' in page
        page = signed.get(f"/jobs/launch/?code_version={other.pk}&dataset_version={data.pk}").content.decode()
        assert f'<option value="{other.pk}" selected>' in page
        assert value_of(page, "entry_point") == "other.py"

    @pytest.mark.parametrize("query", ["code=x", "dataset=x", "code_version=x", f"code={UNKNOWN}", "preset=x"])
    def test_an_address_that_names_nothing_does_no_harm(self, signed, code, query):
        assert signed.get(f"/jobs/launch/?{query}").status_code == 200

    def test_an_older_job_is_cloned_with_everything(self, signed, ada, world, code):
        job = world.launch(
            ada, code=str(code.pk), name="older", arguments=["--a b", ""], environment={"A": "1"}, max_runtime=5400
        )
        page = signed.get(f"/jobs/launch/?from={job.pk}").content.decode()
        assert value_of(page, "name") == "older"
        assert value_of(page, "max_runtime") == "1h 30m"
        assert "&quot;--a b&quot;\n&quot;&quot;</textarea>" in page
        assert (value_of(page, "environment-0-name"), value_of(page, "environment-0-value")) == ("A", "1")

    def test_a_clone_keeps_the_model_among_its_inputs(self, signed, ada, world, code):
        data, model = dataset_version(ada), version_of(job_of(ada, "digits"))
        inputs = [{"dataset_version": str(data.pk), "name": "data"}, {"model_version": str(model.pk), "name": "start"}]
        job = world.launch(ada, code=str(code.pk), name="tuned", inputs=inputs)
        page = signed.get(f"/jobs/launch/?from={job.pk}").content.decode()
        assert f'<option value="model:{model.pk}" selected>digits, version 1 (newest)</option>' in page
        assert f"model_version: {model.pk}" in page
        sent = as_data(values_of_spec(stored_spec(job.spec))) | {"name": "again", "engine": job.engine}
        assert signed.post("/jobs/launch/", sent).status_code == 302
        assert Job.objects.get(name="again").spec["inputs"] == world.again(job).spec["inputs"]

    def test_a_foreign_job_cannot_be_cloned(self, signed, bob, world, code):
        job = world.launch(bob)
        assert signed.get(f"/jobs/launch/?from={job.pk}").status_code == 404

    def test_it_costs_few_queries(self, signed, ada, code, django_assert_max_num_queries):
        dataset_version(ada)
        signed.get("/jobs/launch/")
        with django_assert_max_num_queries(13):
            assert signed.get("/jobs/launch/").status_code == 200

    def test_a_stranger_is_asked_to_sign_in(self, client, world):
        assert client.get("/jobs/launch/").status_code == 302
        assert client.post("/jobs/launch/preview/").status_code == 302


class TestLaunch:
    def test_a_job_is_launched_by_a_plain_post(self, signed, ada, data):
        response = signed.post("/jobs/launch/", data)
        job = Job.objects.get()
        assert response.headers["Location"] == f"/jobs/{job.pk}/"
        assert job.spec["arguments"] == ["--steps=5", "--x"]
        assert job.spec["roles"]["worker"]["replicas"] == 2
        assert job.namespace == ada.personal_namespace

    def test_pressing_the_button_twice_makes_one_job_and_a_change_another(self, signed, data):
        first, second = (signed.post("/jobs/launch/", data).headers["Location"] for _ in range(2))
        assert first == second
        assert signed.post("/jobs/launch/", data | {"name": "other"}).headers["Location"] != first
        assert Job.objects.count() == 2

    def test_what_was_typed_is_remembered_when_it_is_refused(self, signed, data):
        wrong = data | {
            "roles-worker-cpu": "lots", "roles-ps-replicas": "0", "max_runtime": "soon",
            **rows("environment", {"name": "A", "value": "1"}, {"name": "A", "value": "2"}),
            "arguments": "--steps=5", "paths-data_flag": "data",
        }  # fmt: skip
        response = signed.post("/jobs/launch/", wrong)
        assert response.status_code == 422
        page = response.content.decode()
        assert "The job was not launched." in page
        for name in ("roles-worker-cpu", "roles-ps-replicas", "max_runtime", "paths-data_flag"):
            assert value_of(page, name) == wrong[name]
            assert f'href="#f-{name}"' in page
            assert re.search(rf'id="f-{name}_error"><div class="launch-problem">', page), name
            assert re.search(rf'name="{name}"[^>]* aria-describedby="[^"]*f-{name}_error"', page), name
        assert [value_of(page, f"environment-{n}-value") for n in range(2)] == ["1", "2"]
        assert "A is set twice." in page
        assert 'id="launch-limits" open' in page
        assert 'id="launch-success" open' not in page
        assert not Job.objects.exists()

    def test_too_large_a_specification_is_said_beside_its_largest_field(self, signed, data):
        large = rows("environment", *({"name": f"V{n}", "value": "x" * 30_000} for n in range(9)))
        response = signed.post("/jobs/launch/", data | large)
        assert response.status_code == 422
        page = response.content.decode()
        assert re.search(r'id="f-environment_error"><div class="launch-problem">The specification has [0-9,]+ ', page)
        assert "the most is 262,144 bytes (256 KiB). Its largest field is environment." in page
        assert not Job.objects.exists()

    def test_too_large_a_file_is_said_in_the_same_words(self, signed, data):
        text = f"name: digits\nstrategy: single\nenvironment:\n  A: {'x' * (256 << 10)}\nretries: 1\n"
        page = signed.post("/jobs/launch/", data | {"take": "yaml", "yaml": text}).content.decode()
        assert "the most is 262,144 bytes (256 KiB). Its largest field is environment." in page

    def test_a_full_queue_is_said_and_queues_nothing(self, signed, data, settings):
        settings.YARDMASTER_QUEUED_JOBS = 1
        signed.post("/jobs/launch/", data)
        response = signed.post("/jobs/launch/", data | {"name": "other"})
        assert response.status_code == 409
        assert "may have 1 jobs in the queue, and has 1." in html.unescape(response.content.decode())
        assert Job.objects.count() == 1

    def test_a_script_that_is_not_there_is_said_beside_its_field(self, signed, data):
        page = signed.post("/jobs/launch/", data | {"entry_point": "tain.py"}).content.decode()
        assert 'id="f-entry_point_error"><div class="launch-problem">' in page
        assert value_of(page, "entry_point") == "tain.py"

    def test_code_of_others_is_refused_like_none(self, signed, bob, world, data):
        foreign = world.code_version(bob)
        response = signed.post("/jobs/launch/", data | {"code": str(foreign.pk)})
        assert response.status_code == 422
        assert "There is no such code version" in response.content.decode()

    def test_a_viewer_launches_nothing_and_is_told_so(self, signed, ada, bob, data):
        Membership.objects.create(namespace=bob.personal_namespace, user=ada, role=Role.VIEWER.value)
        response = signed.post("/jobs/launch/", data | {"namespace": bob.personal_namespace.slug})
        assert response.status_code == 403
        assert "This needs the role member" in response.content.decode()
        assert value_of(response.content.decode(), "name") == "digits"

    def test_hostile_texts_harm_nothing_and_come_back(self, signed, data):
        fields = [
            "name",
            "entry_point",
            "arguments",
            "environment-TOTAL_FORMS",
            "roles-worker-cpu",
            "inputs-0-name",
            "yaml",
            "namespace",
            "engine",
        ]
        response = signed.post("/jobs/launch/", data | dict.fromkeys(fields, HOSTILE))
        page = response.content.decode()
        assert response.status_code in (404, 422)
        assert "<script>alert" not in page
        if response.status_code == 422:
            assert value_of(page, "name") == HOSTILE

    def test_who_may_not_use_the_local_engine_is_told_before_he_types(self, signed, settings, world, code):
        world.engine.isolates = False
        page = signed.get("/jobs/launch/").content.decode()
        assert "You cannot launch on the engine" in page
        assert "YARDMASTER_LOCAL_ENGINE_FOR_ALL" in page
        assert re.search(r'id="launch-button" disabled', page)


class TestButtonsWithoutScripts:
    def take(self, signed, data, what, **more) -> str:
        response = signed.post("/jobs/launch/", data | {"take": what} | more)
        assert response.status_code == 200
        assert not Job.objects.exists()
        return response.content.decode()

    def test_another_preset_keeps_what_was_typed(self, signed, data):
        page = self.take(signed, data, "preset", strategy="parameter_server", name="kept")
        assert value_of(page, "name") == "kept"
        assert 'name="roles-chief-replicas" value="1"' in page

    def test_other_code_brings_its_scripts(self, signed, ada, world, data):
        other = world.code_version(ada, {"other.py": ""})
        assert value_of(self.take(signed, data, "code", code=str(other.pk)), "entry_point") == "other.py"

    def test_another_row_for_a_dataset(self, signed, ada, data):
        chosen = rows("inputs", {"dataset_version": str(dataset_version(ada).pk), "name": ""})
        page = self.take(signed, data, "add:inputs", **chosen)
        assert set(re.findall(r'name="inputs-(\d)-name"', page)) == {"0", "1", "2"}

    def test_the_shape_that_fits(self, signed, data):
        page = self.take(signed, data, "shape:worker=1,ps=1,admin=x")
        assert value_of(page, "roles-worker-replicas") == "1"

    def test_a_job_file_fills_the_form(self, signed, data):
        text = "name: from-file\nstrategy: single\nroles: {worker: {cpu: 2}}\ncode: digits\nentry_point: train.py\n"
        page = self.take(signed, data, "yaml", yaml=text)
        assert value_of(page, "name") == "from-file"
        assert value_of(page, "roles-worker-cpu") == "2"

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("name: [", "Line 1"),
            ("name: a\ncode: nothing@7", "There is no code of this name"),
            ("name: a\nstrategy: singel", "Did you mean single?"),
            ("nmae: a", "is not a known field"),
            ("name: a\nnamespace: not-mine", "no such namespace"),
        ],
    )
    def test_a_job_file_with_a_mistake_stays_and_says_which(self, signed, data, text, said):
        page = html.unescape(self.take(signed, data, "yaml", yaml=text))
        assert said in page
        assert text in page
        assert value_of(page, "name") == "digits"

    def test_the_verdict_on_demand(self, signed, data):
        assert "Fits now" in self.take(signed, data, "check")


class TestPreview:
    def look(self, signed, data) -> str:
        response = signed.post("/jobs/launch/preview/", data, headers={"HX-Request": "true"})
        assert response.status_code == 200
        return html.unescape(response.content.decode())

    def test_it_says_that_it_fits_and_shows_the_file(self, signed, data):
        text = self.look(signed, data)
        assert "Fits now" in text
        assert "code: digits@1" in text
        assert "--steps=5" in text
        assert "1 parameter server, 2 workers" in text

    def test_what_never_fits_comes_with_numbers_and_the_largest_shape_that_does(self, signed, ada, data):
        """coder#14251, kueue#15614: the quota is said before the launch, not after it."""
        Quota.objects.update_or_create(namespace=ada.personal_namespace, defaults={"cpu": 3})
        text = self.look(signed, data | {"roles-worker-replicas": "8"})
        assert "Can never start" in text
        assert "the namespace's quota" in text
        assert 'value="shape:' in text
        shape = re.search(r'value="(shape:[^"]+)"', text)
        assert shape
        page = signed.post("/jobs/launch/", data | {"take": shape[1]}, headers={"HX-Request": "true"}).content.decode()
        assert value_of(page, "roles-worker-replicas") == "2"
        assert "Fits now" in page

    def test_what_waits_says_behind_how_many(self, signed, ada, world, data):
        Quota.objects.update_or_create(namespace=ada.personal_namespace, defaults={"cpu": 3})
        world.launch(ada)
        world.settle()
        text = self.look(signed, data)
        assert "Waits" in text
        assert "Can never start" not in text

    def test_what_is_missing_is_named(self, signed, data):
        text = self.look(signed, data | {"name": "", "roles-worker-cpu": "lots"})
        assert "Not complete" in text
        assert "Worker: CPU" in text
        assert 'href="#f-roles-worker-cpu"' in text

    def test_warnings_about_the_code_are_shown_before_the_launch(self, signed, ada, world, data):
        """Keras 3 has no parameter-server training: said before the launch."""
        script = "import keras\nmodel = keras.Sequential()\nmodel.fit(1, epochs=2)\n"
        other = world.code_version(ada, {"train.py": script})
        text = self.look(
            signed, data | {"code": str(other.pk), "strategy": "parameter_server", "roles-chief-replicas": "1"}
        )
        assert "is Keras 3" in text
        assert "train.py, line 1" in text

    def test_an_engine_that_is_not_for_one_is_said(self, signed, world, data):
        world.engine.isolates = False
        assert "Not allowed" in self.look(signed, data)

    def test_odd_input_is_answered_too(self, signed, world):
        assert "Not complete" in self.look(
            signed, {"strategy": "nonsense", "code": "x", "inputs-0-dataset_version": "y"}
        )

    def test_teams_are_offered_and_foreign_ones_not(self, signed, ada, bob, data):
        team = Namespace.objects.create(slug="team", title="Team")
        Membership.objects.create(namespace=team, user=ada, role=Role.MEMBER.value)
        page = signed.get("/jobs/launch/").content.decode()
        assert '<option value="team">' in page
        assert f'value="{bob.personal_namespace.slug}"' not in page


class TestFixes:
    SCRIPT = (
        "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--logdir')\n"
        "parser.add_argument('--train_dir', required=True)\nparser.add_argument('--rate', type=float)\n"
        "print(parser.parse_args())\n"
    )

    @pytest.fixture
    def strict(self, world, ada, data) -> dict[str, str]:
        version = world.code_version(ada, {"train.py": self.SCRIPT})
        return data | {
            "strategy": "single",
            "code": str(version.pk),
            "arguments": "--rate 0.1",
            "max_runtime": "5m",
            "roles-worker-replicas": "1",
        }

    def test_a_finding_has_a_button_that_changes_the_form_and_loses_nothing(self, signed, strict):
        page = signed.post("/jobs/launch/", strict | {"take": "check"}).content.decode()
        assert "The script gets --logdir (logs and checkpoints)." in page
        assert "The script requires --train_dir, which the job does not give." in page
        (button,) = re.findall(r'name="take" value="(fix:[^"]+)"', page)
        page = signed.post("/jobs/launch/", strict | {"take": html.unescape(button)}).content.decode()
        assert "--rate 0.1\n--train_dir=$LOG_DIR</textarea>" in page
        assert value_of(page, "max_runtime") == "5m"
        assert 'value="fix:' not in page

    def test_a_missing_package_is_added_with_one_click(self, signed, world, ada, strict):
        version = world.code_version(ada, {"train.py": "import yaml\nprint(yaml)\n"})
        sent = strict | {"code": str(version.pk), "arguments": "", "take": "check"}
        page = signed.post("/jobs/launch/", sent).content.decode()
        assert "The module yaml is not in the task" in page
        assert re.findall(r'name="take" value="(fix:[^"]+)"', page) == ["fix:requirements+=pyyaml"]
        page = signed.post("/jobs/launch/", sent | {"take": "fix:requirements+=pyyaml"}).content.decode()
        assert "pyyaml</textarea>" in page
        assert "The module yaml is not in the task" not in page

    def test_the_stored_specification_has_the_flags_that_are_passed(self, signed, strict):
        signed.post("/jobs/launch/", strict | {"arguments": "--rate 0.1\r\n--train_dir=$LOG_DIR"})
        spec = Job.objects.get().spec
        assert spec["arguments"] == ["--rate", "0.1", "--train_dir=$LOG_DIR"]
        flags = [spec["paths"][f"{kind}_flag"] for kind in ("data", "log", "model")]
        assert flags == ["", "--logdir", ""]


class TestProposals:
    MIRRORED = "import tensorflow as tf\ntf.distribute.MultiWorkerMirroredStrategy()\n"
    STRICT = TestFixes.SCRIPT

    def test_the_code_proposes_strategy_script_name_and_arguments(self, signed, world, ada):
        code = world.code_version(ada, {"train.py": self.MIRRORED + self.STRICT})
        page = signed.get(f"/jobs/launch/?code_version={code.pk}").content.decode()
        assert 'id="preset-multi_worker_mirrored" checked' in page
        assert value_of(page, "roles-worker-replicas") == "2"
        assert (value_of(page, "name"), value_of(page, "entry_point")) == (code.parent.name, "train.py")
        assert "--train_dir=$LOG_DIR</textarea>" in page

    def test_a_strategy_of_the_address_is_meant(self, signed, world, ada):
        code = world.code_version(ada, {"train.py": self.MIRRORED})
        page = signed.get(f"/jobs/launch/?preset=single&code_version={code.pk}").content.decode()
        assert 'id="preset-single" checked' in page

    def test_other_code_brings_other_proposals_and_what_was_typed_stays(self, signed, world, ada):
        first, second = (world.code_version(ada, {f"{n}.py": text}) for n, text in (("a", "1\n"), ("b", self.MIRRORED)))
        page = signed.get(f"/jobs/launch/?code_version={first.pk}").content.decode()
        sent = {
            name: value_of(page, name)
            for name in ("proposed", "name", "entry_point", "roles-worker-cpu", "roles-worker-memory")
        } | {"strategy": "single", "code": str(second.pk), "take": "code", "roles-worker-replicas": "1"}
        page = signed.post("/jobs/launch/", sent).content.decode()
        assert 'id="preset-multi_worker_mirrored" checked' in page
        assert (value_of(page, "name"), value_of(page, "entry_point")) == (second.parent.name, "b.py")
        typed = sent | {"name": "mine", "strategy": "batch", "arguments": "--x"}
        page = signed.post("/jobs/launch/", typed).content.decode()
        assert 'id="preset-batch" checked' in page
        assert value_of(page, "name") == "mine"
        assert "--x</textarea>" in page

    def test_an_empty_form_gets_the_counts_and_sizes_of_the_strategy_of_its_first_code(self, signed, world, ada):
        empty = form_of(signed.get("/jobs/launch/").content.decode())
        code = world.code_version(ada, {"train.py": "print(1)\n"})
        page = signed.post("/jobs/launch/", empty | {"code": str(code.pk), "take": "code"}).content.decode()
        assert 'id="preset-single" checked' in page
        assert value_of(page, "roles-worker-cpu") == "1"
        changed = empty | {"code": str(code.pk), "take": "code", "roles-worker-cpu": "0.7"}
        assert value_of(signed.post("/jobs/launch/", changed).content.decode(), "roles-worker-cpu") == "0.7"

    def test_modules_notebooks_and_old_code_are_proposed_as_what_they_are(self, signed, world, ada):
        first = world.code_version(ada, {"net/train.py": "from .data import x\n", "net/data.py": "x = 1\n"})
        book = world.code_version(ada, {"book.ipynb": BOOK})
        old = world.code_version(ada, {"a.py": "import tensorflow as tf\ntf.placeholder(tf.float32)\n"})
        form = form_of(signed.get(f"/jobs/launch/?code_version={first.pk}").content.decode())
        assert (form["runs"], form["entry_point"], "tf1" in form) == ("module", "-m net.train", False)
        for code, right in ((book, ("notebook", "book.ipynb", False)), (old, ("file", "a.py", True)),
                            (first, ("module", "-m net.train", False))):  # fmt: skip
            page = signed.post("/jobs/launch/", form | {"code": str(code.pk), "take": "code"}).content.decode()
            form = form_of(f'<form id="launch">{page}</form>')
            assert (form["runs"], form["entry_point"], "tf1" in form) == right

    def test_what_to_run_stays_as_it_was_chosen(self, signed, world, ada):
        first = world.code_version(ada, {"a.py": "", "b.py": ""})
        other = world.code_version(ada, {"net/train.py": "from .data import x\n", "b.py": ""})
        form = form_of(signed.get(f"/jobs/launch/?code_version={first.pk}").content.decode())
        chosen = form | {"entry_point": "b.py", "code": str(other.pk), "take": "code"}
        assert value_of(signed.post("/jobs/launch/", chosen).content.decode(), "entry_point") == "b.py"
        command = form | {"runs": "command", "command": "make", "code": str(other.pk), "take": "code"}
        assert ">\nmake</textarea>" in signed.post("/jobs/launch/", command).content.decode()

    @pytest.mark.parametrize("proposed", ["", "[]", "{", '{"strategy": 3}', "x" * 9000, "[" * 5000])
    def test_a_hidden_field_that_is_none_of_ours_does_no_harm(self, signed, data, proposed):
        assert signed.post("/jobs/launch/", data | {"take": "code", "proposed": proposed}).status_code == 200


def test_a_spark_job_has_the_fields_of_tensorflow_on_spark_and_shows_what_they_add(signed, data):
    page = signed.post("/jobs/launch/", data | {"strategy": "spark", "take": "preset"}).content.decode()
    assert "TensorFlow on the executors" in page
    fields = form_of(page) | {"spark_ps": "1", "roles-executor-replicas": "1"}
    page = signed.post("/jobs/launch/", fields | {"take": "check"}).content.decode()
    assert "The only executor must be a worker. Enter 0, or add executors." in page
    page = signed.post("/jobs/launch/", fields | {"roles-executor-replicas": "2", "take": "check"}).content.decode()
    assert "--num_ps=1" in page
