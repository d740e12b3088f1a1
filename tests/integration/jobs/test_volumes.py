"""Volumes of namespaces: created, charged, enlarged, removed; datasets published to one; and jobs that use them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from apps.audit.models import AuditEvent
from apps.datasets.models import DatasetVersion
from apps.errors import Conflict, Invalid, QuotaExceeded
from apps.jobs import services
from apps.jobs.engines.configured import engine_named
from apps.jobs.engines.namespaces import engine_namespaces_keep
from apps.jobs.engines.volumes import (
    size_by_default,
    volume_create,
    volume_delete,
    volume_resize,
    volumes_keep,
    volumes_sweep,
)
from apps.jobs.models import Job, TaskFact, Volume, VolumeCopy, VolumeLeftover
from apps.jobs.services import job_delete, job_retry, job_stop
from apps.jobs.state.specs import asked_spec
from apps.jobs.volume_copies import copies_of, version_publish, version_unpublish
from apps.namespaces.models import EngineNamespace, Membership, Namespace, Quota
from apps.namespaces.models import Role as MemberRole
from apps.namespaces.services import engine_namespaces_give_up, team_create
from apps.uploads.storage_ledger import storage_use
from tests.integration.jobs.world import StagedEngine, World, refuses_transactions, task_of
from yardmaster.engines.fake import EngineWithVolumes
from yardmaster.errors import Problem, SpecRejected, Unavailable
from yardmaster.job.spec import LogDir, Role
from yardmaster.job.spec_json import spec_to_json
from yardmaster.job.spec_stored import stored_spec
from yardmaster.job.volumes import VolumeKind
from yardmaster.lifecycle.phases import TaskPhase

GIB = 1 << 30


class VolumeEngine(EngineWithVolumes, StagedEngine):
    """Refuses to be called inside a transaction."""

    def __init__(self, *, name: str = "staged") -> None:
        super().__init__(name=name)

    def keep_volumes(self, namespace_id: Any, wanted: Any) -> Any:
        with self._verb("keep_volumes"):
            return super().keep_volumes(namespace_id, wanted)


@pytest.fixture
def volume_world(db, settings, stores) -> World:
    settings.YARDMASTER_ENGINES = {"staged": {"class": f"{__name__}.VolumeEngine", "options": {}}}
    settings.YARDMASTER_DEFAULT_ENGINE = "staged"
    engine = engine_named("staged")
    engine.before_verb = refuses_transactions()
    return World(engine)


@pytest.fixture
def mine(volume_world, ada) -> Namespace:
    namespace = Namespace.objects.get(owner=ada)
    Quota.objects.update_or_create(namespace=namespace, defaults={"storage": 10 * GIB, "cpu": None, "memory": None})
    return namespace


@pytest.fixture
def volume(mine, ada) -> Volume:
    return made(mine, ada, VolumeKind.DATA)


@pytest.fixture
def version(volume_world, ada) -> DatasetVersion:
    return volume_world.dataset_version(ada, {"a": "x"})


def made(namespace: Namespace, user, kind: VolumeKind, size: int | None = GIB) -> Volume:
    row = volume_create(namespace=namespace, engine="staged", kind=kind, size=size, actor=user)
    volumes_keep(namespace.pk)
    row.refresh_from_db()
    return row


def end(world: World, job: Job, *, well: bool = True) -> None:
    world.until_running(job)
    key = world.again(job).key
    if well:
        world.engine.set_task(key, Role.WORKER, 0, phase=TaskPhase.SUCCEEDED, exit_code=0)
    else:
        world.engine.set_task(key, Role.WORKER, 0, phase=TaskPhase.FAILED, exit_code=65, reason="BadData")
    world.until_quiet()


def codes(error: pytest.ExceptionInfo[SpecRejected]) -> dict[str, str]:
    return {one.field: one.code for one in error.value.problems}


# --- volumes ---------------------------------------------------------------------------------------------------------


def test_a_volume_is_made_at_the_engine_and_charged_to_the_storage_quota(volume_world, mine, volume, ada):
    assert volume_world.engine.volumes[mine.pk] == {VolumeKind.DATA: GIB}
    assert (volume.phase, volume.found_size, volume.message) == ("ready", GIB, "")
    assert storage_use(mine).used == GIB
    assert volume_create(namespace=mine, engine="staged", kind=VolumeKind.DATA, size=GIB, actor=ada) == volume
    with pytest.raises(Conflict, match="has 1 GiB"):
        volume_create(namespace=mine, engine="staged", kind=VolumeKind.DATA, size=2 * GIB, actor=ada)
    assert storage_use(mine).used == GIB


def test_more_than_what_is_left_of_the_quota_is_refused_and_nothing_is_made(mine, volume, ada):
    with pytest.raises(QuotaExceeded):
        volume_create(namespace=mine, engine="staged", kind=VolumeKind.LOG, size=10 * GIB, actor=ada)
    with pytest.raises(QuotaExceeded):
        volume_resize(volume=volume, size=11 * GIB, actor=ada)
    assert list(Volume.objects.values_list("size", flat=True)) == [GIB]
    assert storage_use(mine).used == GIB


def test_a_volume_without_a_size_takes_what_is_left_of_the_quota_in_whole_mib(mine, ada):
    made(mine, ada, VolumeKind.LOG, GIB + 1)
    assert size_by_default(mine) == 9 * GIB - (1 << 20)
    rest = made(mine, ada, VolumeKind.DATA, None)
    assert rest.size == 9 * GIB - (1 << 20)
    assert storage_use(mine).used == GIB + 1 + rest.size
    assert made(mine, ada, VolumeKind.DATA, None) == rest  # asked again: the one that there is
    volume_delete(volume=rest, actor=ada)
    with pytest.raises(Conflict, match="is being removed"):
        volume_create(namespace=mine, engine="staged", kind=VolumeKind.DATA, size=None, actor=ada)


def test_a_volume_without_a_size_is_refused_where_nothing_is_left_and_where_there_is_no_quota(mine, volume, ada):
    Quota.objects.filter(namespace=mine).update(storage=GIB + (1 << 20) - 1)
    with pytest.raises(QuotaExceeded, match="Nothing of the namespace's storage quota is left") as full:
        volume_create(namespace=mine, engine="staged", kind=VolumeKind.LOG, size=None, actor=ada)
    assert [(one.field, one.code) for one in full.value.errors] == [("size", "quota_full")]
    Quota.objects.filter(namespace=mine).update(storage=None)
    with pytest.raises(Invalid) as unbounded:
        volume_create(namespace=mine, engine="staged", kind=VolumeKind.LOG, size=None, actor=ada)
    assert [(one.field, one.code) for one in unbounded.value.errors] == [("size", "required")]
    assert list(Volume.objects.all()) == [volume]


def test_a_volume_is_enlarged_and_never_made_smaller(volume_world, mine, volume, ada):
    volume_resize(volume=volume, size=2 * GIB, actor=ada)
    volumes_keep(mine.pk)
    assert volume_world.engine.volumes[mine.pk] == {VolumeKind.DATA: 2 * GIB}
    assert storage_use(mine).used == 2 * GIB
    with pytest.raises(Invalid):
        volume_resize(volume=volume, size=GIB, actor=ada)


def test_a_volume_that_stays_pending_says_why_and_is_looked_at_again(volume_world, mine, ada):
    volume_world.engine.pending = "ProvisioningFailed: no space"
    row = made(mine, ada, VolumeKind.LOG)
    assert (row.phase, row.message) == ("pending", "ProvisioningFailed: no space")
    later = row.next_look_at
    volume_world.engine.pending = ""
    assert volumes_sweep(later) == 1
    volumes_keep(mine.pk, clock=lambda: later)
    row.refresh_from_db()
    assert (row.phase, row.message, row.setbacks) == ("ready", "", 0)


def test_an_engine_that_is_away_is_said_and_tried_again(volume_world, mine, volume, ada):
    volume_world.engine.fail_next("keep_volumes", Unavailable("The engine does not answer.", remedy="Wait."))
    due = volume.next_look_at
    volumes_keep(mine.pk, clock=lambda: due)
    volume.refresh_from_db()
    assert (volume.message, volume.remedy, volume.phase) == ("The engine does not answer.", "Wait.", "ready")
    assert volume.next_look_at < due + timedelta(minutes=5)


def test_a_volume_that_goes_is_charged_until_it_is_gone(volume_world, mine, volume, ada):
    volume_world.engine.held = {VolumeKind.DATA}
    volume_delete(volume=volume, actor=ada)
    volumes_keep(mine.pk)
    row = Volume.objects.get()
    assert (row.phase, storage_use(mine).used) == ("going", GIB)
    volume_world.engine.held = set()
    volumes_keep(mine.pk, clock=lambda: row.next_look_at)
    assert not Volume.objects.exists()
    assert storage_use(mine).used == 0


def test_a_namespace_that_is_removed_at_the_engine_takes_its_volumes_along(volume_world, mine, volume):
    Namespace.objects.filter(pk=mine.pk).update(closed_at=volume_world.now)
    engine_namespaces_give_up([mine.pk], volume_world.now)
    engine_namespaces_keep(mine.pk, clock=volume_world.clock)
    assert not EngineNamespace.objects.exists()
    assert not Volume.objects.exists()
    assert storage_use(mine).used == 0


def test_an_engine_without_volumes_offers_none(world, ada):
    with pytest.raises(Invalid) as refused:
        made(Namespace.objects.get(owner=ada), ada, VolumeKind.DATA)
    assert [one.code for one in refused.value.errors] == ["no_volumes"]
    with pytest.raises(SpecRejected) as rejected:
        world.launch(ada, log_dir="volume")
    assert codes(rejected) == {"log_dir": "no_volumes"}


# --- publishing ------------------------------------------------------------------------------------------------------


def test_a_version_is_published_by_a_job_and_counts_against_the_volume(volume_world, volume, version, ada):
    copy, is_new = version_publish(user=ada, version=version)
    assert (is_new, copy.state) == (True, "copying")
    assert copy.job is not None
    assert version_publish(user=ada, version=version)[0].job == copy.job  # asked again: the same job
    assert Job.objects.count() == 1
    volume_world.until_running(copy.job)
    order = task_of(copy.job).get("/api/v1/task/order/", {"role": "worker", "index": 0}).json()
    assert (order["spec"]["program"], order["spec"]["options"]) == ("volume_copy", {"bytes": 1, "files": 1})
    assert [one["path"] for one in order["inputs"][0]["files"]] == ["a"]
    end(volume_world, copy.job)
    assert [one.state for one in copies_of(version)] == ["ready"]
    assert version_publish(user=ada, version=version) == (copies_of(version)[0], False)


def test_a_publication_that_fails_can_be_asked_for_again(volume_world, volume, version, ada):
    first, _ = version_publish(user=ada, version=version)
    assert first.job is not None
    end(volume_world, first.job, well=False)
    assert [one.state for one in copies_of(version)] == ["failed"]
    with pytest.raises(SpecRejected):  # it would write what is not counted
        job_retry(user=ada, job=volume_world.again(first.job))
    second, is_new = version_publish(user=ada, version=version)
    assert is_new
    assert second.job != first.job
    assert VolumeCopy.objects.count() == 1


def test_a_publication_that_the_engine_rejects_has_failed(volume_world, volume, version, ada):
    copy, _ = version_publish(user=ada, version=version)
    with pytest.raises(Conflict, match="still publishing") as busy:
        version_unpublish(user=ada, copy=copy)
    assert busy.value.code == "volume_busy"
    volume_world.engine.fail_next("submit", SpecRejected([Problem("roles.worker.cpu", "too_large", "No.", "Less.")]))
    volume_world.until_quiet()
    assert volume_world.again(copy.job).reason == "SpecRejected"
    assert [one.state for one in copies_of(version)] == ["failed"]
    volume_world.engine.fail_next("submit", SpecRejected([Problem("roles.worker.cpu", "too_large", "No.", "Less.")]))
    removed, _ = version_unpublish(user=ada, copy=copies_of(version)[0])
    Job.objects.filter(pk=removed.job.pk).update(spec={"version": 99})
    volume_world.until_quiet()
    assert [one.state for one in copies_of(version)] == ["failed"]


def test_a_refused_launch_leaves_a_copy_as_it_was(volume_world, volume, version, ada, settings):
    copy, _ = version_publish(user=ada, version=version)
    assert copy.job is not None
    end(volume_world, copy.job, well=False)
    settings.YARDMASTER_QUEUED_JOBS = 0
    for ask in (lambda: version_unpublish(user=ada, copy=copy), lambda: version_publish(user=ada, version=version)):
        with pytest.raises(Conflict, match="in the queue"):
            ask()
        assert [one.state for one in copies_of(version)] == ["failed"]
    VolumeCopy.objects.update(state="ready")
    with pytest.raises(Conflict, match="in the queue"):
        version_unpublish(user=ada, copy=copy)
    assert [one.state for one in copies_of(version)] == ["ready"]


def test_a_copy_whose_job_is_not_cleaned_up_is_not_touched(volume_world, volume, version, ada):
    copy, _ = version_publish(user=ada, version=version)
    assert copy.job is not None
    end(volume_world, copy.job, well=False)
    Job.objects.update(cleaned_up_at=None)
    for ask in (lambda: version_unpublish(user=ada, copy=copy), lambda: version_publish(user=ada, version=version)):
        with pytest.raises(Conflict) as busy:
            ask()
        assert busy.value.code == "volume_busy"


@pytest.mark.parametrize("how", ["made again", "lost"])
def test_what_a_volume_held_that_its_engine_made_again_or_lost_is_not_there(
    volume_world, mine, volume, version, ada, how
):
    copy, _ = version_publish(user=ada, version=version)
    end(volume_world, copy.job)
    VolumeLeftover.objects.create(volume=volume, job_id=copy.job.pk)
    if how == "lost":
        volume_world.engine.is_lost = True
    else:
        volume_world.engine.identities[VolumeKind.DATA] = "second"
    for _ in range(2):
        Volume.objects.update(next_look_at=volume.next_look_at)
        volumes_keep(mine.pk, clock=lambda: volume.next_look_at + timedelta(hours=1))
    copy.refresh_from_db()
    assert (copy.state, VolumeLeftover.objects.count()) == (VolumeCopy.State.FAILED, 0)
    emptied = AuditEvent.objects.filter(action="volume.emptied")
    assert [one.facts["versions"] for one in emptied] == [1]
    again, launched = version_publish(user=ada, version=version)
    assert (again.pk, launched) == (copy.pk, True)
    end(volume_world, again.job)
    if how == "made again":
        volumes_keep(mine.pk, clock=lambda: volume.next_look_at + timedelta(hours=2))
        copy.refresh_from_db()
        assert copy.state == VolumeCopy.State.READY


def test_a_volume_without_space_takes_no_further_version(volume_world, volume, version, ada):
    DatasetVersion.objects.filter(pk=version.pk).update(size=GIB)
    version.refresh_from_db()
    copy, _ = version_publish(user=ada, version=version)
    other = volume_world.dataset_version(ada, {"b": "y"})
    with pytest.raises(QuotaExceeded, match="are left") as refused:
        version_publish(user=ada, version=other)
    assert refused.value.code == "volume_full"
    assert not copies_of(other)
    assert copy.job is not None
    end(volume_world, copy.job)
    gone, _ = version_unpublish(user=ada, copy=copies_of(version)[0])
    assert gone.job is not None
    end(volume_world, gone.job)
    assert not copies_of(version)
    assert version_publish(user=ada, version=other)[1]


def test_without_a_volume_nothing_is_published(mine, version, ada):
    with pytest.raises(Conflict) as refused:
        version_publish(user=ada, version=version)
    assert refused.value.code == "no_volume"


def test_no_user_launches_what_writes_to_the_volume(volume_world, volume, version, ada):
    copy, _ = version_publish(user=ada, version=version)
    assert copy.job is not None
    with pytest.raises(SpecRejected) as refused:
        asked_spec(spec_to_json(stored_spec(copy.job.spec)))
    assert codes(refused) == {"program": "not_launched"}


# --- jobs ------------------------------------------------------------------------------------------------------------


def test_a_job_reads_what_was_published_and_nothing_is_removed_meanwhile(volume_world, volume, version, ada):
    inputs = [{"dataset_version": str(version.pk), "source": "volume"}]
    with pytest.raises(SpecRejected) as refused:
        volume_world.launch(ada, inputs=inputs)
    assert codes(refused) == {"inputs.0.source": "not_on_volume"}
    copy, _ = version_publish(user=ada, version=version)
    assert copy.job is not None
    end(volume_world, copy.job)
    job = volume_world.launch(ada, inputs=inputs)
    volume_world.until_running(job)
    order = task_of(job).get("/api/v1/task/order/", {"role": "worker", "index": 0}).json()
    assert (order["inputs"][0]["source"], order["inputs"][0]["files"]) == ("volume", [])
    with pytest.raises(Conflict, match="digits"):
        version_unpublish(user=ada, copy=copies_of(version)[0])
    with pytest.raises(Conflict, match="digits"):
        volume_delete(volume=volume, actor=ada)
    job_stop(user=ada, job=job)
    volume_world.until_quiet()
    assert version_unpublish(user=ada, copy=copies_of(version)[0])[1]


def test_what_is_removed_between_check_and_launch_is_not_used(volume_world, mine, volume, version, ada, monkeypatch):
    log = made(mine, ada, VolumeKind.LOG)
    VolumeCopy.objects.create(
        volume=volume, version=version.pk, dataset="d", number=1, files=1, bytes=1, state="ready", launches=1,
        changed_at=volume_world.now,
    )  # fmt: skip
    meanwhile: list[Any] = [
        lambda: volume_delete(volume=log, actor=ada),
        lambda: version_unpublish(user=ada, copy=copies_of(version)[0]),
    ]
    check = services.accepted_or_refused

    def checked(*given: Any, **more: Any) -> Any:
        if meanwhile:
            meanwhile.pop()()
        return check(*given, **more)

    monkeypatch.setattr(services, "accepted_or_refused", checked)
    with pytest.raises(SpecRejected) as refused:
        volume_world.launch(ada, inputs=[{"dataset_version": str(version.pk), "source": "volume"}])
    assert codes(refused) == {"inputs.0.source": "not_on_volume"}
    with pytest.raises(SpecRejected) as refused:
        volume_world.launch(ada, log_dir="volume")
    assert codes(refused) == {"log_dir": "no_volume"}
    VolumeCopy.objects.update(state="failed", job=None)
    Job.objects.update(cleaned_up_at=volume_world.now)
    meanwhile.append(lambda: volume_delete(volume=volume, actor=ada))
    with pytest.raises(SpecRejected) as refused:
        version_publish(user=ada, version=version)
    assert codes(refused) == {"program": "no_volume"}
    assert [one.state for one in copies_of(version)] == ["failed"]


def test_a_job_without_its_volume_is_refused_by_field(volume_world, mine, version, ada):
    inputs = [{"dataset_version": str(version.pk), "source": "volume"}]
    with pytest.raises(SpecRejected) as refused:
        volume_world.launch(ada, inputs=inputs, log_dir="volume")
    assert codes(refused) == {"inputs.0.source": "no_volume", "log_dir": "no_volume"}
    made(mine, ada, VolumeKind.LOG)
    assert volume_world.launch(ada, log_dir="volume").spec["log_dir"] == "volume"


def test_what_deleted_jobs_left_on_the_log_volume_is_counted_and_removed_by_a_job(volume_world, mine, ada, with_token):
    volume = made(mine, ada, VolumeKind.LOG)
    job = volume_world.launch(ada, log_dir="volume")
    volume_world.until_running(job)
    job_stop(user=ada, job=job)
    volume_world.until_quiet()
    job_retry(user=ada, job=volume_world.again(job), spec=replace(stored_spec(job.spec), log_dir=LogDir.DISK))
    job_stop(user=ada, job=job)
    volume_world.until_quiet()
    job_delete(user=ada, job=volume_world.again(job))
    volume_world.until_quiet()
    assert [one.job_id for one in volume.leftovers.all()] == [job.pk]
    address = f"/api/v1/namespaces/{mine.pk}/volumes/{volume.pk}/clean/"
    begun = with_token(ada).post(address)
    assert begun.status_code == 202, begun.json()
    cleaning = Job.objects.get(pk=begun.json()["job"])
    assert cleaning.spec["options"] == {"jobs": str(job.pk)}
    assert with_token(ada).post(address).json() == begun.json()  # one job at a time
    stuck = VolumeLeftover.objects.create(volume=volume, job_id=volume.pk)
    Job.objects.filter(pk=cleaning.pk).update(spec=cleaning.spec | {"options": {"jobs": f"{stuck.job_id},{job.pk}"}})
    volume_world.until_running(cleaning)
    said = "not removed: logs of 1 of 2 jobs, numbers 1: [Errno 5] Input/output error"
    TaskFact.objects.filter(job=cleaning).update(reported={"message": said})
    end(volume_world, cleaning, well=False)
    assert list(volume.leftovers.all()) == [stuck]
    cleaning = Job.objects.get(pk=with_token(ada).post(address).json()["job"])
    assert cleaning.spec["options"] == {"jobs": str(stuck.job_id)}
    end(volume_world, cleaning)
    assert not volume.leftovers.exists()
    assert with_token(ada).post(address).json()["code"] == "nothing_left"


# --- the API and the pages -------------------------------------------------------------------------------------------


def test_managers_create_enlarge_and_remove_volumes_over_the_api(volume_world, mine, ada, bob, with_token):
    client, address = with_token(ada), f"/api/v1/namespaces/{mine.pk}/volumes/"
    answer = client.post(address, {"kind": "log", "size": "1Gi"})
    assert answer.status_code == 201, answer.json()
    one = answer.json()
    assert (one["kind"], one["engine"], one["size"], one["state"]) == ("log", "staged", GIB, "pending")
    volumes_keep(mine.pk)
    assert [row["state"] for row in client.get(address).json()["results"]] == ["ready"]
    assert client.patch(f"{address}{one['id']}/", {"size": "2Gi"}).json()["size"] == 2 * GIB
    assert client.patch(f"{address}{one['id']}/", {"size": "1Gi"}).status_code == 400
    assert client.post(address, {"kind": "data", "size": "11Gi"}).json()["code"] == "quota_full"
    assert client.post(address, {"kind": "scratch", "size": "x"}).status_code == 400
    assert client.post(address, {"kind": "data", "size": ""}).status_code == 400
    assert with_token(bob).get(address).status_code == 404
    assert client.delete(f"{address}{one['id']}/").json()["state"] == "going"
    volumes_keep(mine.pk)
    assert client.get(address).json()["results"] == []
    actions = AuditEvent.objects.filter(action__startswith="volume.").order_by("pk").values_list("action", flat=True)
    assert list(actions) == ["volume.create", "volume.resize", "volume.delete", "volume.removed"]


def test_over_the_api_a_volume_needs_no_size_as_long_as_some_of_the_quota_is_left(volume_world, mine, ada, with_token):
    client, address = with_token(ada), f"/api/v1/namespaces/{mine.pk}/volumes/"
    answer = client.post(address, {"kind": "data"})
    assert (answer.status_code, answer.json()["size"]) == (201, 10 * GIB)
    refused = client.post(address, {"kind": "log"})
    assert (refused.status_code, refused.json()["code"]) == (409, "quota_full")
    assert "Nothing of the namespace's storage quota is left" in refused.json()["detail"]


def test_the_form_shows_the_size_that_an_empty_field_stands_for(volume_world, mine, volume, ada, client):
    client.force_login(ada)
    address = f"/namespaces/{mine.pk}/volumes/"
    shown = client.get(address).content.decode()
    assert 'placeholder="9Gi"' in shown
    assert "Empty: all that is left of it." in shown
    assert client.post(address, {"kind": "log", "engine": "staged", "size": ""}).status_code == 302
    assert Volume.objects.get(kind="log").size == 9 * GIB
    assert "The log volume of 9 GiB is being created." in client.get(address).content.decode()
    Volume.objects.filter(kind="log").delete()
    refused = client.post(address, {"kind": "log", "engine": "staged", "size": ""})
    assert refused.status_code == 400
    assert "quota is left for a volume" in refused.content.decode()
    Quota.objects.filter(namespace=mine).update(storage=None)
    refused = client.post(address, {"kind": "log", "engine": "staged", "size": ""})
    assert "This field is required." in refused.content.decode()


def test_members_who_manage_nothing_create_no_volume(volume_world, ada, bob, admin, with_token):
    team = team_create(slug="vision", title="", manager=bob, actor=admin)
    Membership.objects.create(namespace=team, user=ada, role=MemberRole.MEMBER)
    address = f"/api/v1/namespaces/{team.pk}/volumes/"
    assert with_token(ada).post(address, {"kind": "log", "size": "1Gi"}).status_code == 403
    assert with_token(ada).get(address).status_code == 200


def test_a_version_is_published_and_removed_over_the_api(volume_world, mine, volume, version, ada, bob, with_token):
    client, address = with_token(ada), f"/api/v1/dataset-versions/{version.pk}/volume/"
    assert with_token(bob).put(address, {}).status_code == 404
    assert client.get(address).json() == []
    assert client.delete(address).status_code == 404
    scoped = with_token(ada, "data")
    assert (scoped.get(address).status_code, scoped.put(address, {}).status_code) == (200, 403)
    assert scoped.delete(address).status_code == 403
    begun = client.put(address, {})
    assert (begun.status_code, begun.json()["state"]) == (202, "copying")
    end(volume_world, Job.objects.get(pk=begun.json()["job"]))
    assert client.put(address, {}).status_code == 200
    (row,) = client.get(address).json()
    assert (row["state"], row["engine"], row["number"]) == ("ready", "staged", 1)
    assert client.get(f"/api/v1/namespaces/{mine.pk}/volumes/").json()["results"][0]["published"] == 1
    gone = client.delete(address)
    assert (gone.status_code, gone.json()["state"]) == (202, "removing")
    end(volume_world, Job.objects.get(pk=gone.json()["job"]))
    assert client.get(address).json() == []


def test_a_version_that_the_portal_has_deleted_is_removed_from_the_volume(
    volume_world, mine, volume, version, ada, with_token
):
    copy, _ = version_publish(user=ada, version=version)
    assert copy.job is not None
    end(volume_world, copy.job)
    version_id = version.pk
    version.delete()
    client, address = with_token(ada), f"/api/v1/namespaces/{mine.pk}/volumes/{volume.pk}/versions/"
    assert [row["version"] for row in client.get(address).json()["results"]] == [str(version_id)]
    gone = client.delete(f"{address}{version_id}/")
    assert gone.status_code == 202, gone.json()
    end(volume_world, Job.objects.get(pk=gone.json()["job"]))
    assert client.delete(f"{address}{version_id}/").status_code == 404


def test_the_pages_show_volumes_say_why_one_is_pending_and_offer_what_helps(volume_world, mine, version, ada, client):
    client.force_login(ada)
    address = f"/namespaces/{mine.pk}/volumes/"
    empty = client.get(address).content.decode()
    assert "No volumes yet" in empty
    assert '<select name="kind"' in empty
    assert "Manage volumes" in client.get(f"/namespaces/{mine.pk}/").content.decode()
    page = f"/datasets/versions/{version.pk}/volume/"
    assert "No data volume" in client.get(page).content.decode()
    volume_world.engine.pending = "ProvisioningFailed: <no space>"
    assert client.post(address, {"kind": "data", "engine": "staged", "size": "20Gi"}).status_code == 400
    assert client.post(address, {"kind": "data", "engine": "staged", "size": "1Gi"}).status_code == 302
    volumes_keep(mine.pk)
    shown = client.get(address).content.decode()
    assert "ProvisioningFailed: &lt;no space&gt;" in shown
    assert "Pending" in shown
    assert client.post(page, {"engine": "staged", "action": "publish"}).status_code == 302
    copy = VolumeCopy.objects.get()
    assert copy.job is not None
    end(volume_world, copy.job)
    assert "source: volume" in client.get(page).content.decode()
    assert "Ready" in client.get(address).content.decode()
    launch = client.get(f"/jobs/launch/?data={version.pk}").content.decode()
    assert "In place, from the data volume" in launch
    assert "On the log volume, shared by all tasks" in launch
