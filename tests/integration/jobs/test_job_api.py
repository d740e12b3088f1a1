"""The API of jobs for people."""

from __future__ import annotations

import uuid

import pytest

from apps.audit.models import AuditEvent
from apps.jobs.models import Job, JobEvent
from apps.jobs.state.task_auth import TaskIdentity
from apps.jobs.task_api.orders import order_for
from apps.namespaces.models import Membership, Namespace
from yardmaster.errors import Problem, SpecRejected
from yardmaster.job.spec import Role
from yardmaster.lifecycle.phases import TaskPhase

JOBS = "/api/v1/jobs/"


@pytest.fixture
def me(world, ada, signed_in):
    return signed_in(ada)


@pytest.fixture
def stranger(world, bob, signed_in):
    return signed_in(bob)


def launched(world, client, owner, **changes) -> dict:
    answer = client.post(JOBS, {"spec": world.spec_json(owner, **changes)})
    assert answer.status_code == 201, answer.json()
    return answer.json()


def test_a_launch_answers_the_job_and_writes_it_down(world, me, ada):
    job = launched(world, me, ada)
    assert (job["phase"], job["wanted"], job["attempt"], job["owner"]) == ("QUEUED", "RUN", 1, "ada")
    assert job["spec"]["version"] == 1
    alone = {name: job[name] for name in job if name != "warnings"}
    assert me.get(f"{JOBS}{job['id']}/").json() == alone | {"serving": None, "published": None}
    assert AuditEvent.objects.filter(action="job.create", subject=f"job:{job['id']}").exists()
    assert JobEvent.objects.get(job_id=job["id"]).facts == {"by": "ada"}


def test_a_launch_says_what_may_go_wrong_in_the_code(world, me, ada):
    code = world.code_version(ada, {"train.py": "import tensorflow as tf\nx = tf.placeholder(tf.float32)\n"})
    job = launched(world, me, ada, code=str(code.pk))
    assert "tensorflow_1" in [one["code"] for one in job["warnings"]]


def test_a_launch_names_missing_packages_and_downloads_of_tasks_without_a_way_out(world, me, ada):
    world.engine.has_way_out = False
    script = "import keras, native, pandas, yaml\nkeras.datasets.mnist.load_data()\n"
    files = {"train.py": script, "requirements.txt": "pandas>=2\n", "native/fast.so": ""}
    job = launched(world, me, ada, code=str(world.code_version(ada, files).pk))
    found = {one["code"]: one for one in job["warnings"]}
    assert found["missing_package"]["remedy"] == "Add pyyaml to requirements.txt in the code."
    assert [one["code"] for one in job["warnings"]].count("missing_package") == 1
    fix = {
        "label": "Set KERAS_HOME to $DATA_DIR",
        "field": "environment.KERAS_HOME",
        "value": "$DATA_DIR",
        "adds": False,
    }
    assert found["downloads"]["fixes"] == [fix]
    assert found["downloads"]["line"] == 2


def test_a_check_says_which_flags_the_tasks_would_get_and_a_launch_stores_them(world, me, ada):
    script = (
        "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--model_dir')\nparser.parse_args()\n"
    )
    spec = world.spec_json(ada, code=str(world.code_version(ada, {"train.py": script}).pk), paths={"data_env": "DATA"})
    paths = me.post(f"{JOBS}check/", {"spec": spec}).json()["paths"]
    assert (paths["data_flag"], paths["log_flag"], paths["model_flag"]) == ("", "--model_dir", "--model_dir")
    assert paths["data_env"] == "DATA"
    job = me.post(JOBS, {"spec": spec}).json()
    assert job["spec"]["paths"] == paths
    assert me.post(f"{JOBS}check/", {"spec": {**spec, "strategy": "ring"}}).json()["paths"] is None


@pytest.mark.parametrize(
    ("change", "field", "code"),
    [
        ({"entry_point": "tarin.py"}, "entry_point", "entry_point_missing"),
        ({"code": str(uuid.UUID(int=7))}, "code", "unknown_version"),
        (
            {"inputs": [{"dataset_version": str(uuid.UUID(int=7)), "name": ""}]},
            "inputs.0.dataset_version",
            "unknown_version",
        ),
        ({"cleanPodPolicy": "All"}, "cleanPodPolicy", None),
        ({"strategy": "ring"}, "strategy", None),
    ],
)
def test_a_launch_names_the_field_and_what_to_do(world, me, ada, change, field, code):
    """trainer#1241: a policy at the wrong level was silently ignored."""
    answer = me.post(JOBS, {"spec": world.spec_json(ada, **change)})
    assert answer.status_code == 422
    problem = next(one for one in answer.json()["errors"] if one["field"] == field)
    assert code is None or problem["code"] == code
    assert problem["message"]
    assert problem["remedy"]
    assert not Job.objects.exists()


def test_only_a_dataset_with_shards_can_be_streamed(world, me, ada):
    plain, sharded = ({"a.csv": "1"}, {"dataset.json": "{}", "train/a.tfrecord.gz": "1"})
    one = {"dataset_version": str(world.dataset_version(ada, plain).pk), "mode": "stream"}
    answer = me.post(JOBS, {"spec": world.spec_json(ada, inputs=[one])})
    assert answer.status_code == 422
    (problem,) = answer.json()["errors"]
    assert (problem["field"], problem["code"]) == ("inputs.0.mode", "no_shards")
    one["dataset_version"] = str(world.dataset_version(ada, sharded).pk)
    job = launched(world, me, ada, inputs=[one])
    assert "stream_unread" in [found["code"] for found in job["warnings"]]
    order = order_for(TaskIdentity(uuid.UUID(job["id"]), 1, ada.personal_namespace.pk), "worker", 0)
    (given,) = order["inputs"]
    assert (given["mode"], given["share"], given["dataset"][:4]) == ("stream", "all", "data")
    assert order["limits"]["stream_bytes"] == 10 << 30
    limits = (order["limits"]["working_bytes"], order["limits"]["working_files"])
    assert limits == (1 << 30, 1_000), "half, as one of several tasks"


def test_somebody_elses_code_is_an_unknown_version(world, me, ada, bob):
    answer = me.post(JOBS, {"spec": world.spec_json(ada, code=str(world.code_version(bob).pk))})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["code"] == "unknown_version"


@pytest.mark.parametrize(
    "address", ["", "why/", "attempts/", "events/", "tasks/", "scalars/", "checkpoints/", "model/", "manifests/"]
)
def test_a_strangers_job_is_not_found_at_any_address(world, me, stranger, ada, address):
    job = launched(world, me, ada)
    foreign = stranger.get(f"{JOBS}{job['id']}/{address}")
    unknown = stranger.get(f"{JOBS}{uuid.UUID(int=7)}/{address}")
    assert foreign.status_code == unknown.status_code == 404
    assert foreign.json() == unknown.json()


@pytest.mark.parametrize(("verb", "address"), [("post", "stop/"), ("post", "retry/"), ("delete", "")])
def test_a_strangers_job_cannot_be_touched(world, me, stranger, ada, verb, address):
    """clearml#1046: people could kill each other's work."""
    job = launched(world, me, ada)
    assert getattr(stranger, verb)(f"{JOBS}{job['id']}/{address}").status_code == 404
    assert Job.objects.get(pk=job["id"]).wanted == "RUN"


def test_a_viewer_reads_and_a_member_stops(world, me, stranger, ada, bob):
    job = launched(world, me, ada)
    seat = Membership.objects.create(namespace=Namespace.objects.get(owner=ada), user=bob, role="viewer")
    assert stranger.get(f"{JOBS}{job['id']}/").status_code == 200
    for verb, address in [("post", "stop/"), ("post", "retry/"), ("delete", "")]:
        answer = getattr(stranger, verb)(f"{JOBS}{job['id']}/{address}")
        assert (answer.status_code, answer.json()["code"]) == (403, "permission_denied")
        assert answer.json()["remedy"]
    seat.role = "member"
    seat.save()
    answer = stranger.post(f"{JOBS}{job['id']}/stop/")
    assert (answer.status_code, answer.json()["wanted"]) == (200, "STOP")


def test_a_token_needs_the_scope_of_jobs(world, ada, me, with_token):
    job = launched(world, me, ada)
    reader, worker = with_token(ada, "read"), with_token(ada, "jobs")
    assert reader.get(JOBS).status_code == 200
    assert reader.post(f"{JOBS}{job['id']}/stop/").status_code == 403
    assert worker.post(f"{JOBS}{job['id']}/stop/").status_code == 200


def test_the_same_key_launches_one_job(world, me, ada):
    body = {"spec": world.spec_json(ada)}
    first = me.post(JOBS, body, headers={"Idempotency-Key": "k1"})
    again = me.post(JOBS, body, headers={"Idempotency-Key": "k1"})
    assert first.json() == again.json()
    assert again.headers["Idempotency-Replayed"] == "true"
    assert Job.objects.count() == 1


def test_a_launch_that_died_before_its_answer_was_kept_makes_no_second_job(world, me, ada):
    """The job was committed, and the process was killed before the answer was written to the idempotency record."""
    from apps.api.models import IdempotencyRecord

    body = {"spec": world.spec_json(ada)}
    first = me.post(JOBS, body, headers={"Idempotency-Key": "k1"}).json()
    IdempotencyRecord.objects.update(status=None, body="", claimed_at="2020-01-01T00:00:00Z")
    again = me.post(JOBS, body, headers={"Idempotency-Key": "k1"})
    assert (again.status_code, again.json()["id"]) == (201, first["id"])
    assert Job.objects.count() == 1


def test_the_list_filters(world, me, ada, bob, admin, signed_in):
    names = {}
    for name, strategy in [("alpha", "between_graph"), ("beta", "single")]:
        roles = {"worker": {}} if strategy == "single" else {"worker": {}, "ps": {}}
        names[name] = launched(world, me, ada, name=name, strategy=strategy, roles=roles)["id"]
    other = launched(world, signed_in(bob), bob, name="alphabet")["id"]
    Job.objects.filter(pk=names["beta"]).update(phase="STOPPED")

    def found(client, **query) -> set[str]:
        return {one["id"] for one in client.get(JOBS, query).json()["results"]}

    mine, everybody = set(names.values()), {*names.values(), other}
    boss = signed_in(admin)
    assert found(me) == mine
    assert found(boss) == everybody
    assert found(me, phase="STOPPED") == {names["beta"]}
    assert found(me, phase=["STOPPED", "QUEUED"]) == mine
    assert found(me, strategy="single") == {names["beta"]}
    assert found(boss, owner="bob") == {other}
    assert found(boss, owner=str(bob.pk)) == {other}
    assert found(boss, namespace="ada") == mine
    assert found(boss, search="ALPHA") == {names["alpha"], other}
    assert found(me, search="phabet") == set()
    assert me.get(JOBS, {"namespace": "bob"}).status_code == 404
    assert me.get(JOBS, {"phase": "DONE"}).json()["errors"][0]["field"] == "phase"


def test_pages_go_there_and_back(world, me, ada):
    code = str(world.code_version(ada).pk)
    ids = [launched(world, me, ada, code=code)["id"] for _ in range(7)][::-1]
    seen, url = [], f"{JOBS}?page_size=3"
    pages = []
    while url:
        page = me.get(url).json()
        pages.append(page)
        seen += [one["id"] for one in page["results"]]
        url = page["next"]
    assert seen == ids
    back = me.get(pages[-1]["previous"]).json()
    assert [one["id"] for one in back["results"]] == ids[3:6]
    assert not {"count", "total"} & pages[0].keys()


def test_a_stop_of_an_ended_job_changes_nothing(world, me, ada):
    job = launched(world, me, ada)
    Job.objects.filter(pk=job["id"]).update(next_look_at=world.now)
    world.settle()
    world.engine.succeed(Job.objects.get(pk=job["id"]))
    world.until_quiet()
    answer = me.post(f"{JOBS}{job['id']}/stop/")
    assert (answer.status_code, answer.json()["phase"], answer.json()["wanted"]) == (200, "SUCCEEDED", "RUN")


def test_a_retry_waits_until_the_job_is_over_and_may_change_the_specification(world, me, ada):
    job = world.launch(ada)
    world.settle()
    address = f"{JOBS}{job.pk}/retry/"
    refused = me.post(address)
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
    assert refused.json()["remedy"]
    world.engine.set(job, Role.WORKER, 0, TaskPhase.FAILED, reason="OutOfMemory", exit_code=137)
    world.until_quiet()
    larger = world.spec_json(ada, name="larger", roles={"worker": {"memory": "2Gi"}, "ps": {}})
    answer = me.post(address, {"spec": larger})
    assert (answer.status_code, answer.json()["attempt"], answer.json()["name"]) == (200, 2, "larger")
    attempts = me.get(f"{JOBS}{job.pk}/attempts/").json()
    assert [(one["number"], one["reason"], one["exit_code"]) for one in attempts] == [
        (2, "", None),
        (1, "OutOfMemory", 137),
    ]
    assert Job.objects.get(pk=job.pk).needs["memory"] == 7 << 29


def test_a_running_job_cannot_be_deleted_and_an_ended_one_leaves_nothing(world, me, ada):
    from apps.stores import log_store
    from yardmaster.logs.keys import StreamKey

    job = world.launch(ada)
    world.settle()
    assert me.delete(f"{JOBS}{job.pk}/").status_code == 409
    log_store().append(StreamKey(job.pk, 1, Role.WORKER, 0), 0, b"a line\n")
    world.engine.succeed(job)
    world.until_quiet()
    assert me.delete(f"{JOBS}{job.pk}/").status_code == 204
    assert me.get(f"{JOBS}{job.pk}/").status_code == 404
    assert me.get(JOBS).json()["results"] == []
    world.now = max(world.now, world.again(job).next_look_at)
    world.settle()
    assert not Job.objects.filter(pk=job.pk).exists()
    assert log_store().streams(job.pk) == []


def test_why_a_job_failed_names_the_task_its_last_words_and_what_they_mean(world, me, ada):
    """pai#2326: a failure category and a resolution that the user can act on."""
    from apps.stores import log_store
    from yardmaster.logs.keys import StreamKey

    job = world.launch(ada)
    world.settle()
    text = b"Traceback (most recent call last):\nModuleNotFoundError: No module named 'pandas'\n"
    log_store().append(StreamKey(job.pk, 1, Role.WORKER, 1), 0, text)
    world.engine.set(job, Role.WORKER, 1, TaskPhase.FAILED, reason="ScriptFailed", exit_code=1)
    world.look(job)
    told = me.get(f"{JOBS}{job.pk}/why/").json()
    assert (told["phase"], told["reason"], told["blame"]) == ("FAILED", "ScriptFailed", "user")
    assert told["task"] == {"role": "worker", "index": 1, "exit_code": 1}
    assert told["last_lines"][-1] == "ModuleNotFoundError: No module named 'pandas'"
    assert "pandas" in told["explanation"]["message"]


def test_tasks_are_there_before_the_engine_has_shown_them(world, me, ada):
    job = world.launch(ada)
    tasks = me.get(f"{JOBS}{job.pk}/tasks/").json()
    assert [(one["role"], one["index"], one["phase"]) for one in tasks["results"]] == [
        ("worker", 0, "PENDING"),
        ("worker", 1, "PENDING"),
        ("ps", 0, "PENDING"),
    ]
    world.settle()
    assert {one["phase"] for one in me.get(f"{JOBS}{job.pk}/tasks/").json()["results"]} == {"RUNNING"}


def test_events_tell_the_story_page_by_page(world, me, ada):
    job = world.launch(ada)
    world.settle()
    world.engine.succeed(job)
    world.until_quiet()
    events = me.get(f"{JOBS}{job.pk}/events/").json()
    kinds = [one["kind"] for one in events["results"]]
    assert kinds == ["phase", "phase", "phase", "phase", "quota_freed", "released", "cleaned_up"]
    assert events["next"] is None
    last = me.get(f"{JOBS}{job.pk}/events/", {"after": events["results"][-2]["id"]}).json()
    assert [one["kind"] for one in last["results"]] == ["cleaned_up"]


def test_a_succeeded_job_says_when_the_rest_is_released(world, me, ada):
    job = world.launch(ada, reclaim_delay=45)
    world.settle()
    world.engine.succeed(job)
    world.look(job)
    shown = me.get(f"{JOBS}{job.pk}/").json()
    assert shown["reclaim_at"] == "2027-01-04T12:00:45.000000Z"
    world.until_quiet()
    assert me.get(f"{JOBS}{job.pk}/").json()["reclaim_at"] is None


def test_manifests_are_what_the_engine_would_create(world, me, ada):
    job = world.launch(ada)
    shown = me.get(f"{JOBS}{job.pk}/manifests/").json()
    assert (shown["engine"], len(shown["manifests"])) == ("staged", 3)


@pytest.mark.parametrize(
    ("roles", "verdict", "reason"),
    [
        ({"worker": {"replicas": 2}, "ps": {}}, "fits_now", ""),
        ({"worker": {"replicas": 40}, "ps": {}}, "waits", "WaitingForCapacity"),
        ({"worker": {"replicas": 90}, "ps": {}}, "never_fits", "ExceedsCapacity"),
    ],
)
def test_a_check_says_now_later_or_never_and_the_largest_shape(world, me, ada, roles, verdict, reason):
    """coder#14251, kueue#15614: warn before the launch."""
    world.launch(ada, roles={"worker": {"replicas": 30}, "ps": {}})
    world.settle()
    before = Job.objects.count()
    answer = me.post(f"{JOBS}check/", {"spec": world.spec_json(ada, roles=roles)})
    assert answer.status_code == 200
    told = answer.json()
    assert (told["verdict"], told["reason"], told["problems"]) == (verdict, reason, [])
    assert told["message"]
    assert told["largest_fit"]["worker"] == min(roles["worker"]["replicas"], 32)
    assert Job.objects.count() == before


def test_a_check_lists_every_problem_at_once(world, me, ada):
    spec = world.spec_json(ada, entry_point="nowhere.py", code=str(uuid.UUID(int=3)), retries=-1)
    told = me.post(f"{JOBS}check/", {"spec": spec}).json()
    assert told["verdict"] == "never_fits"
    assert "retries" in [one["field"] for one in told["problems"]]


def test_a_check_says_what_the_engine_would_refuse_and_a_lack_of_room_says_more(world, me, ada):
    problem = Problem("roles.worker.replicas", "too_many_tasks", "No task could begin.", "Request at most 884.", "900")
    for replicas, said in ((2, ["roles.worker.replicas"]), (90, [])):
        world.engine.fail_next("preview", SpecRejected([problem]))
        spec = world.spec_json(ada, roles={"worker": {"replicas": replicas}, "ps": {}})
        told = me.post(f"{JOBS}check/", {"spec": spec}).json()
        assert (told["verdict"], [one["field"] for one in told["problems"]]) == ("never_fits", said)
        assert bool(told["numbers"]) is not bool(said)


def test_engines_say_what_they_have_and_whether_one_may(world, me, ada, settings):
    world.launch(ada)
    world.settle()
    (shown,) = me.get("/api/v1/engines/").json()["results"]
    assert (shown["name"], shown["allowed"], shown["is_default"]) == ("staged", True, True)
    assert shown["total"]["cpu"] - shown["free"]["cpu"] == 3


def test_an_engine_that_isolates_nobody_is_for_administrators(world, me, ada, admin, signed_in, settings):
    world.engine.isolates = False
    refused = me.post(JOBS, {"spec": world.spec_json(ada)})
    assert (refused.status_code, refused.json()["code"]) == (403, "permission_denied")
    assert "YARDMASTER_LOCAL_ENGINE_FOR_ALL" in refused.json()["remedy"]
    assert me.get("/api/v1/engines/").json()["results"][0]["allowed"] is False
    launched(world, signed_in(admin), admin)
    settings.YARDMASTER_LOCAL_ENGINE_FOR_ALL = True
    launched(world, me, ada)


def test_an_unknown_engine_is_refused_with_the_names_of_those_there_are(world, me, ada):
    answer = me.post(JOBS, {"spec": world.spec_json(ada), "engine": "cluster"})
    assert answer.status_code == 422
    assert answer.json()["errors"][0] | {"message": ""} == {
        "field": "engine",
        "code": "unknown_engine",
        "message": "",
        "remedy": "Use one of: staged.",
        "value": "cluster",
    }


def test_the_list_takes_few_statements_however_many_jobs_there_are(world, me, ada, django_assert_max_num_queries):
    code = str(world.code_version(ada).pk)
    for _ in range(12):
        world.launch(ada, code=code)
    me.get(JOBS, {"page_size": 1})  # the first request of a browser is remembered in its account
    with django_assert_max_num_queries(8) as counted:
        assert len(me.get(JOBS, {"page_size": 10}).json()["results"]) == 10
    statements = " ".join(one["sql"].upper() for one in counted.captured_queries)
    assert "COUNT(" not in statements
    assert "OFFSET" not in statements
