"""The API of sweeps."""

from __future__ import annotations

import pytest

from apps.sweeps.models import Sweep
from tests.integration.sweeps.conftest import PLAN

pytestmark = pytest.mark.django_db

URL = "/api/v1/sweeps/"


@pytest.fixture
def api(ada, signed_in):
    return signed_in(ada)


def test_a_sweep_is_created_read_and_moved(api, base):
    made = api.post(URL, {"spec": base, "plan": PLAN | {"parameters": {"lr": "0.1, 0.01"}}}, format="json")
    assert made.status_code == 201, made.json()
    one = f"{URL}{made.json()['id']}/"
    assert (made.json()["count"], made.json()["state"], made.json()["warnings"]) == (2, "running", [])
    assert api.get(URL).json()["results"][0]["name"] == "digits"
    found = api.get(one).json()
    assert (found["counts"], found["best"]) == ({"waiting": 2}, None)
    trials = api.get(f"{one}trials/").json()["results"]
    assert [(trial["number"], trial["values"], trial["state"]) for trial in trials] == [
        (1, {"lr": 0.1}, "waiting"), (2, {"lr": 0.01}, "waiting"),
    ]  # fmt: skip
    assert api.post(f"{one}pause/").json()["state"] == "paused"
    assert api.delete(one).status_code == 409
    assert api.post(f"{one}resume/").json()["state"] == "running"
    assert api.post(f"{one}stop/").json()["state"] == "stopping"
    assert api.post(f"{one}resume/").json()["code"] == "sweep_ended"


def test_an_idempotent_request_makes_one_sweep(api, base):
    for _ in range(2):
        answer = api.post(URL, {"spec": base, "plan": PLAN}, format="json", headers={"Idempotency-Key": "once"})
        assert answer.status_code == 201
    assert Sweep.objects.count() == 1


def test_every_problem_is_named_by_its_field(api, base):
    plan = {"parameters": {"lr": "2..1", "a b": [1]}, "method": "bayes", "parallel": 0}
    answer = api.post(URL, {"spec": base, "plan": plan}, format="json")
    assert answer.status_code == 400
    fields = {(one["field"], one["code"]) for one in answer.json()["errors"]}
    assert fields == {
        ("parameters.lr", "bad_range"), ("parameters", "bad_name"), ("method", "unknown_word"),
        ("parallel", "out_of_range"),
    }  # fmt: skip
    wrong = api.post(URL, {"spec": base | {"strategy": "none"}, "plan": PLAN}, format="json")
    assert wrong.json()["errors"][0]["field"] == "strategy"


@pytest.mark.parametrize("spec", [None, 1, [], {}, {"name": 3}])
@pytest.mark.parametrize("plan", [None, 1, [], {}, {"parameters": 1}, {"parameters": {"x": {}}}])
def test_what_is_no_sweep_is_refused(api, spec, plan):
    assert 400 <= api.post(URL, {"spec": spec, "plan": plan}, format="json").status_code < 500


def test_others_do_not_see_it(make, bob, signed_in):
    one = f"{URL}{make().sweep.pk}/"
    other = signed_in(bob)
    assert other.get(URL).json()["results"] == []
    assert {other.get(f"{one}{part}").status_code for part in ("", "trials/")} == {404}
    assert {other.post(f"{one}{part}/").status_code for part in ("stop", "pause", "resume")} == {404}
    assert other.delete(one).status_code == 404


def test_lists_take_few_queries(make, api, django_assert_max_num_queries):
    swept = make()
    swept.look()
    for _ in range(3):
        make()
    with django_assert_max_num_queries(8):
        api.get(URL)
    with django_assert_max_num_queries(8):
        api.get(f"{URL}{swept.sweep.pk}/trials/")
    with django_assert_max_num_queries(12):
        api.get(f"{URL}{swept.sweep.pk}/")
