"""An image of one's own in pods: pushed to a real registry that asks for a password, pulled with a secret of the
operator's, and run without anything of the portal in it; and what is said where it cannot be had."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cluster.account import Account, may
from tests.cluster.conftest import portal_on
from tests.cluster.engine_on_cluster import ClusterHarness
from tests.cluster.images import PushedImage, push, registry_on_node
from tests.cluster.jobs import cleaned_up, ended, text_of
from tests.cluster.reach import Cluster, Refused, wait_for
from tests.contract.engine_harness import ACCESS, spec_of, task_in, wait_until
from tests.real.portal import RealPortal
from yardmaster.engines.kubernetes.render.names import namespace_name
from yardmaster.ids import JobKey
from yardmaster.job.spec import Resources, Role, RoleSpec, Strategy, TrainingSpec
from yardmaster.job.spec_images import PinnedImage
from yardmaster.lifecycle.phases import TaskPhase
from yardmaster_client import Job, Yardmaster
from yardmaster_client.jobfile import read_job_file

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(300)]

EXAMPLE = Path(__file__).parents[2] / "examples" / "gallery" / "own_image"
PATIENCE = 90.0
LOGIN, OLD_LOGIN = "plants-login", "plants-old-login"


@pytest.fixture(scope="module")
def plants(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PushedImage]:
    """The image of the example: Python, a module of its own, and no runner."""
    folder = tmp_path_factory.mktemp("registry")
    with registry_on_node(cluster, folder) as running:
        yield push(cluster, running, EXAMPLE / "image", "lab/plants", folder)


@pytest.fixture(scope="module")
def portal(cluster: Cluster, account: Account, own_address: str, logins: str) -> Iterator[RealPortal]:
    with portal_on(cluster, account, own_address, pull_secrets_from=logins) as running:
        yield running


@pytest.fixture(scope="module")
def catalogue(portal: RealPortal, plants: PushedImage) -> None:
    """What an administrator put into it: the image of the example, and one with a password that is no longer right."""
    facts = {"python": "3.11", "packages": ["plants"]}
    with Yardmaster(portal.url, portal.token_of("root", is_staff=True)) as root:
        root.transport.post("images/", {"name": "plants", "reference": plants.reference, "pull_secret": LOGIN, **facts})
        # Another digest: what a node has pulled once it need not ask for again.
        locked = {"name": "locked", "reference": plants.unknown(), "pull_secret": OLD_LOGIN}
        root.transport.post("images/", {**locked, **facts})


@pytest.fixture(scope="module")
def logins(cluster: Cluster, account: Account, plants: PushedImage) -> str:
    """The operator's namespace with a login that is right and one that is not; the portal may read just these."""
    for name, password in ((LOGIN, {}), (OLD_LOGIN, {"password": "long forgotten"})):
        metadata = {"name": name, "namespace": account.home}
        data = plants.registry.login(**password)
        cluster.apply({"apiVersion": "v1", "kind": "Secret", "metadata": metadata,
                       "type": "kubernetes.io/dockerconfigjson", "data": data})  # fmt: skip
    group = "rbac.authorization.k8s.io"
    metadata = {"name": "pull-secrets", "namespace": account.home}
    rule = {"apiGroups": [""], "resources": ["secrets"], "resourceNames": [LOGIN, OLD_LOGIN], "verbs": ["get"]}
    subject = {"kind": "ServiceAccount", "name": "portal", "namespace": account.home}
    cluster.apply({"apiVersion": f"{group}/v1", "kind": "Role", "metadata": metadata, "rules": [rule]})
    cluster.apply({"apiVersion": f"{group}/v1", "kind": "RoleBinding", "metadata": metadata, "subjects": [subject],
                   "roleRef": {"apiGroup": group, "kind": "Role", "name": "pull-secrets"}})  # fmt: skip
    wait_for("the right to read", lambda: may(account, "get", f"secrets/{OLD_LOGIN}", account.home), 20)
    return account.home


def of_image(reference: str, pull_secret: str = LOGIN) -> TrainingSpec:
    tiny = {Role.WORKER: RoleSpec(1, Resources(cpu=0.2, memory=128 << 20))}
    pinned = PinnedImage("plants", reference, pull_secret)
    return replace(spec_of(Strategy.SINGLE, roles=tiny, retries=0), image="plants", pinned_images=(pinned,))


def test_what_pods_run_as_may_read_no_secret(cluster: Cluster, on_cluster: ClusterHarness, key: JobKey):
    namespace = namespace_name(key.namespace_id, on_cluster.engine.options)
    account = f"--as=system:serviceaccount:{namespace}:tasks"
    with pytest.raises(Refused, match="is forbidden"):
        cluster.kubectl("get", "secrets", "--namespace", namespace, account)


def launched(client: Yardmaster, **changes: object) -> Job:
    """The example's job file, with these changes."""
    spec = read_job_file(EXAMPLE / "job.yaml").spec
    latest = client.code.put(spec["code"], [EXAMPLE]).latest
    assert latest is not None
    return client.jobs.launch({**spec, "code": latest.id, **changes})


def test_the_example_of_the_gallery_runs_in_an_image_without_anything_of_ours(
    cluster: Cluster, ada: Yardmaster, catalogue: None
):
    """Pulled with a login that is in its namespace for as long as the run is."""
    job = launched(ada, reclaim_delay=0)
    assert not job.warnings, "the module that only the image has is known to be there"
    logins_of = ("--all-namespaces", "-l", f"yardmaster/job={job.id}", "--field-selector",
                 "type=kubernetes.io/dockerconfigjson")  # fmt: skip
    wait_for("the login to be there", lambda: cluster.names("secrets", *logins_of), 60)
    job = ended(ada, job)
    assert "bean grows at 0.350 a day" in text_of(ada, job)
    assert "growth.json" in [one.path for one in ada.jobs.outputs(job.id)]
    cleaned_up(ada, job)
    wait_for("the login to go", lambda: not cluster.names("secrets", *logins_of), 30)


def test_a_password_that_is_wrong_is_said_at_the_job_while_it_waits(
    ada: Yardmaster, catalogue: None, plants: PushedImage
):
    job = launched(ada, image="locked")
    seen = wait_for("why it waits", lambda: reasoned(ada, job, "ImageAccessDenied"), 60)
    assert seen.phase == "STARTING"
    assert seen.message.startswith(f"The registry does not let the cluster pull the image locked ({plants.unknown()}).")
    assert "pull secret" in seen.remedy
    ada.jobs.stop(job.id)


def reasoned(client: Yardmaster, job: Job, reason: str) -> Job | None:
    found = client.jobs.get(job.id)
    return found if found.reason == reason else None


def said_of(on_cluster: ClusterHarness, key: JobKey, spec: TrainingSpec, logins: str, reason: str) -> str:
    engine = on_cluster.new_engine(pull_secrets_from=logins)
    engine.submit(spec, key, ACCESS)
    seen = wait_until(engine, key, lambda seen: task_in(seen, Role.WORKER, 0).reason == reason, PATIENCE)
    assert task_in(seen, Role.WORKER, 0).phase is TaskPhase.PENDING
    return task_in(seen, Role.WORKER, 0).message


def test_a_digest_that_the_registry_does_not_have_is_said(
    on_cluster: ClusterHarness, key: JobKey, plants: PushedImage, logins: str
):
    said = said_of(on_cluster, key, of_image(plants.unknown()), logins, "ImageNotFound")
    assert said.startswith(f"The registry does not have the image plants ({plants.unknown()}):")


def test_a_registry_that_is_away_is_said(on_cluster: ClusterHarness, key: JobKey, plants: PushedImage, logins: str):
    away = plants.unknown().replace(f":{plants.registry.port}/", ":9/")
    said = said_of(on_cluster, key, of_image(away), logins, "RegistryUnreachable")
    assert said.startswith(f"The registry of the image plants ({away}) does not answer the cluster's node.")


def test_images_that_cannot_run_a_task_fail_at_once_and_say_why(
    cluster: Cluster, on_cluster: ClusterHarness, key: JobKey, plants: PushedImage, logins: str, tmp_path: Path
):
    """One without Python, and one whose Python is no program for this processor."""
    program = tmp_path / "python3"
    program.write_bytes(b"\x7fELF of another processor")
    program.chmod(0o755)
    engine = on_cluster.new_engine(pull_secrets_from=logins)
    for number, (line, reason, said) in enumerate((
        ("COPY Dockerfile /", "ImageLacksPython", "The image plants has no Python that its tasks may start."),
        ("COPY python3 /usr/bin/", "ImagePlatform", "The image plants is not for the processor of the node."),
    )):  # fmt: skip
        (tmp_path / "Dockerfile").write_text(f"FROM scratch\n{line}\nENV PATH=/usr/bin\n")
        image = push(cluster, plants.registry, tmp_path, f"lab/{number}", tmp_path)
        run = replace(key, attempt=number + 1)
        try:
            engine.submit(replace(of_image(image.reference), retries=2), run, ACCESS)
            seen = wait_until(engine, run, lambda seen: task_in(seen, Role.WORKER, 0).phase.is_ended, 40)
            worker = task_in(seen, Role.WORKER, 0)
            assert (worker.phase, worker.reason, worker.restarts) == (TaskPhase.FAILED, reason, 0)
            assert worker.message.startswith(said)
        finally:
            engine.clean_up(run)
