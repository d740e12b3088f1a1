"""The pages of sweeps: their form, what they show, and how few queries they take."""

from __future__ import annotations

import json
import re

import pytest

from apps.jobs.models import Job
from apps.namespaces.models import Membership, Role
from apps.namespaces.services import team_create
from apps.sweeps.models import Sweep, SweepTrial

pytestmark = pytest.mark.django_db


@pytest.fixture
def web(ada, client):
    client.force_login(ada)
    return client


def filled(swept, count: int) -> None:
    """So many trials, as if they had ended."""
    SweepTrial.objects.filter(sweep=swept.sweep).delete()
    rows = [
        SweepTrial(sweep=swept.sweep, number=n, values={"lr": 1 / n}, state="succeeded", best=n / 10, value=n, steps=9,
                   curve=[[1, 1.0], [9, n / 10]])
        for n in range(1, count + 1)
    ]  # fmt: skip
    SweepTrial.objects.bulk_create(rows)
    Sweep.objects.filter(pk=swept.sweep.pk).update(count=count)


def test_a_sweep_is_made_from_a_job_by_its_form(world, ada, web, base):
    job = world.launch(ada, **base | {"arguments": ["--lr=0.5", "--epochs=3"]})
    page = web.get(f"/sweeps/new/?from={job.pk}").content.decode()
    assert '<option value="epochs"></option>' in page
    carried = re.search(r'name="base" value="([^"]*)"', page)
    assert carried is not None
    from html import unescape

    form = {
        "base": unescape(carried[1]), "form": "once", "name": "tuned", "p-0-name": "lr", "p-0-values": "0.1, 0.01",
        "p-1-name": "epochs", "p-1-values": "1..2", "method": "grid", "parallel": "2", "metric": "loss",
        "goal": "minimize", "rule": "none", "min_steps": "1", "factor": "3", "stop_after_failures": "3", "seed": "0",
    }  # fmt: skip
    answer = web.post("/sweeps/new/", form)
    sweep = Sweep.objects.get()
    assert answer.headers["Location"] == f"/sweeps/{sweep.pk}/"
    assert (sweep.name, sweep.count, sweep.owner) == ("tuned", 4, ada)
    web.post("/sweeps/new/", form)
    assert Sweep.objects.count() == 1  # the button was pressed twice


def test_the_launch_form_leads_to_it(web, ada, world):
    code = str(world.code_version(ada).pk)
    form = {
        "strategy": "single", "name": "digits", "code": code, "entry_point": "train.py", "arguments": "--lr={{lr}}",
        "roles-worker-replicas": "1", "roles-worker-cpu": "1", "roles-worker-memory": "1Gi",
        "inputs-TOTAL_FORMS": "0", "inputs-INITIAL_FORMS": "0", "environment-TOTAL_FORMS": "0",
        "environment-INITIAL_FORMS": "0", "secrets-TOTAL_FORMS": "0", "secrets-INITIAL_FORMS": "0",
    }  # fmt: skip
    page = web.post("/sweeps/new/", form).content.decode()
    assert 'name="p-0-name" value="lr"' in page  # a place that the job has for it
    assert "--lr={{lr}}" in page
    assert 'formaction="/sweeps/new/"' in web.get("/jobs/launch/").content.decode()


def test_what_is_wrong_stands_at_its_field(web, world, ada, base):
    form = {"base": json.dumps({"spec": base, "place": {"namespace": "", "engine": ""}}), "name": "x",
            "p-0-name": "lr", "p-0-values": "3..1", "method": "random", "trials": "0", "rule": "median",
            "goal": "minimize"}  # fmt: skip
    answer = web.post("/sweeps/new/", form)
    page = answer.content.decode()
    assert answer.status_code == 422
    assert "The low end of a range must be below its high end." in page
    assert "from 1 to 1000" in page
    assert "Stopping early needs a metric." in page
    assert not Sweep.objects.exists()


def hidden(spec: str) -> str:
    return f'{{"spec": {spec}, "place": {{"namespace": "", "engine": ""}}}}'


@pytest.mark.parametrize(
    "base_text",
    [
        "", "{", "[]", '{"spec": 1, "place": {}}', "[" * 5_000, "x" * (1 << 20) + "x", hidden('{"arguments": 5}'),
        hidden('{"arguments": null}'), hidden('{"a": ' + "[" * 500 + "]" * 500 + "}"), hidden('{"a": NaN}'),
        hidden('{"a": 1e999}'), hidden(r'{"a": "\u0000"}'),
    ],
)  # fmt: skip
def test_a_job_that_the_page_did_not_write_is_refused(web, base_text):
    assert web.post("/sweeps/new/", {"base": base_text}).status_code == 400


def test_the_page_shows_progress_the_best_and_all_trials(web, make):
    swept = make()
    swept.look()
    swept.reports(1, 0.9, 0.25)
    swept.look()
    page = web.get(f"/sweeps/{swept.sweep.pk}/").content.decode()
    assert "<strong>0 of 3</strong>" in page
    assert "<strong>0.25</strong>" in page
    data = json.loads(re.search(r'<script id="sweep-data" type="application/json">(.*?)</script>', page)[1])
    assert data["axes"] == [{"name": "lr", "low": 0.001, "high": 0.1, "log": True}]
    assert [(one["n"], one["values"], one["best"]) for one in data["trials"]] == [(1, [0.1], 0.25)]
    part = web.get(f"/sweeps/{swept.sweep.pk}/", headers={"HX-Request": "true"}).content.decode()
    assert part.count('hx-swap-oob="true"') == 4
    assert "<html" not in part


def test_trials_are_sorted_and_in_parts(web, make):
    swept = make()
    filled(swept, 120)
    url = f"/sweeps/{swept.sweep.pk}/"

    def numbers(query: str) -> list[int]:
        page = web.get(f"{url}{query}").content.decode()
        body = page.partition('id="trials"')[2]
        return [int(one) for one in re.findall(r'<th scope="row">(\d+)', body)]

    assert numbers("") == list(range(1, 51))
    assert numbers("?from=100") == list(range(101, 121))
    assert numbers("?order=-best")[:3] == [120, 119, 118]
    assert numbers("?order=p.lr")[:2] == [120, 119]
    assert numbers("?order=nonsense&from=x")[:2] == [1, 2]


@pytest.mark.parametrize("count", [2, 200])
def test_pages_take_few_queries_however_many_trials(web, make, count, django_assert_max_num_queries):
    swept = make()
    filled(swept, count)
    web.get("/sweeps/")
    with django_assert_max_num_queries(8):
        web.get(f"/sweeps/{swept.sweep.pk}/")
    with django_assert_max_num_queries(8):
        web.get("/sweeps/")


def test_hostile_text_stays_text(web, make, base):
    hostile = "<script>alert(1)</script>"
    swept = make(spec=base | {"name": hostile}, parameters={"opt": [hostile, "</script>"]}, metric={"tag": hostile})
    filled(swept, 2)
    SweepTrial.objects.update(values={"opt": "</script>" + hostile})
    for url in ("/sweeps/", f"/sweeps/{swept.sweep.pk}/", f"/sweeps/{swept.sweep.pk}/delete/"):
        assert hostile not in web.get(url).content.decode()


def test_pages_are_for_those_who_may(client, bob, ada, admin, make):
    team = team_create(slug="vision", title="", actor=admin, manager=ada)
    swept = make(namespace=team)
    url = f"/sweeps/{swept.sweep.pk}/"
    client.force_login(bob)
    assert client.get(url).status_code == 404
    Membership.objects.create(namespace=team, user=bob, role=Role.VIEWER)
    page = client.get(url).content.decode()
    assert "sweep-stop" not in page
    assert client.post(f"{url}stop/").status_code == 403
    assert client.get(f"{url}delete/").status_code == 403
    client.force_login(ada)
    assert "sweep-stop" in client.get(f"{url}").content.decode()


def test_buttons_of_the_page_move_it(web, make):
    swept = make()
    url = f"/sweeps/{swept.sweep.pk}/"
    for action, state in (("pause", "paused"), ("resume", "running"), ("stop", "stopping")):
        assert web.post(f"{url}{action}/").status_code == 302
        swept.sweep.refresh_from_db()
        assert swept.sweep.state == state
    swept.look(2)
    assert "Its 0 jobs" in web.get(f"{url}delete/").content.decode()
    assert web.post(f"{url}delete/", {"jobs": "keep"}).status_code == 302
    assert not Sweep.objects.exists()
    assert not Job.objects.exists()


def rows_in_order(page: str) -> list[int]:
    body = page.partition('id="trials"')[2].partition("<tbody>")[2].partition("</tbody>")[0]
    return [int(number) for number in re.findall(r'<th scope="row">(?:<a[^>]*>)?(\d+)', body)]


@pytest.mark.parametrize(
    ("order", "expected"),
    [("best", [2, 1, 3, 4]), ("-best", [3, 1, 2, 4]), ("last", [3, 1, 2, 4]), ("-last", [1, 3, 2, 4])],
)
def test_the_best_ranks_trials_and_one_whose_end_is_unknown_is_last_by_its_end(make, web, order, expected):
    swept = make()
    SweepTrial.objects.filter(sweep=swept.sweep).delete()
    curves = {1: [[1, 0.5], [2, 0.6]], 2: [[1, 0.3], [2, None]], 3: [[1, 0.55], [2, 0.55]], 4: []}
    SweepTrial.objects.bulk_create(
        SweepTrial(
            sweep=swept.sweep,
            number=number,
            values={"lr": 1},
            state="succeeded",
            curve=curve,
            best=min((value for _, value in curve if value is not None), default=None),
            value=next((value for _, value in reversed(curve) if value is not None), None),
            steps=len(curve) or None,
        )
        for number, curve in curves.items()
    )
    Sweep.objects.filter(pk=swept.sweep.pk).update(count=4)
    page = web.get(f"/sweeps/{swept.sweep.pk}/?order={order}").content.decode()
    assert rows_in_order(page) == expected
    assert page.count("not finite</td>") == 1
    assert "ranked by their best value" in page


def test_the_page_of_a_trials_job_names_its_sweep_and_its_values(make, ada, web, world, django_assert_max_num_queries):
    swept = make()
    swept.look()
    job = swept.job(2)
    web.get("/")
    with django_assert_max_num_queries(12):
        page = web.get(f"/jobs/{job.pk}/").content.decode()
    assert f'href="/sweeps/{swept.sweep.pk}/"' in page
    assert "trial 2 of 3" in page
    assert "<bdi>lr</bdi> = <bdi>0.01</bdi>" in page
    other = world.launch(ada, name="no-trial")
    assert (
        "/sweeps/"
        not in web.get(f"/jobs/{other.pk}/").content.decode().partition('id="job-facts"')[2].partition("</section>")[0]
    )
