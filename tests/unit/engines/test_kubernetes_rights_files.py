"""The files in deploy/kubernetes agree with each other, with the code and with docs/kubernetes.md."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import yaml

from yardmaster.engines.kubernetes.namespaces import manifests as namespaces
from yardmaster.engines.kubernetes.render import names
from yardmaster.engines.kubernetes.render.options import TaskOptions

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "deploy" / "kubernetes"
PAGE = (ROOT / "docs" / "kubernetes.md").read_text()
RIGHTS = list(yaml.safe_load_all((FOLDER / "rights.yaml").read_text()))
POLICY, BINDING = yaml.safe_load_all((FOLDER / "admission-policy.yaml").read_text())
BOUND = dict(re.findall(r'"(bound_\w+)": "([^"]+)"', PAGE))


def named(kind: str) -> list[str]:
    return [one["metadata"]["name"] for one in RIGHTS if one["kind"] == kind]


def test_the_page_names_the_files_the_roles_and_the_options():
    assert set(re.findall(r"kubectl apply -f (deploy/\S+)", PAGE)) == {
        str(path.relative_to(ROOT)) for path in FOLDER.iterdir()
    }
    roles = re.findall(r"^\| `(yardmaster-\w+)` \|", PAGE, re.MULTILINE)
    assert sorted(roles) == sorted(named("ClusterRole"))
    account = next(one["metadata"] for one in RIGHTS if one["kind"] == "ServiceAccount")
    assert {"bound_role": "yardmaster-tasks", "bound_account": f"{account['namespace']}/{account['name']}"} == BOUND


def test_the_policy_is_about_the_account_that_has_the_rights_and_about_its_role():
    namespace, _, account = BOUND["bound_account"].partition("/")
    (condition,) = POLICY["spec"]["matchConditions"]
    assert condition["expression"] == f"request.userInfo.username == 'system:serviceaccount:{namespace}:{account}'"
    prefix, role = (one["expression"].strip("'") for one in POLICY["spec"]["variables"][:2])
    assert (prefix, role) == (TaskOptions(image="a").namespace_prefix, BOUND["bound_role"])
    assert {one["roleRef"]["name"] for one in RIGHTS if one["kind"] == "ClusterRoleBinding"} == {
        *named("ClusterRole")
    } - {role}
    for one in RIGHTS:
        if "subjects" in one:
            assert one["subjects"] == [{"kind": "ServiceAccount", "name": account, "namespace": namespace}]


def test_the_policy_holds_for_everything_and_refuses_rather_than_lets_through():
    (rule,) = POLICY["spec"]["matchConstraints"]["resourceRules"]
    assert rule == {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}
    assert POLICY["spec"]["failurePolicy"] == "Fail"
    assert BINDING["spec"] == {"policyName": POLICY["metadata"]["name"], "validationActions": ["Deny"]}
    # Any other reason is a 422, which the engine takes for a fault of the job.
    assert {one["reason"] for one in POLICY["spec"]["validations"]} == {"Forbidden"}


def test_the_policy_reads_the_labels_that_the_engine_writes():
    text = (FOLDER / "admission-policy.yaml").read_text()
    read = set(re.findall(r"abels\[\?'([^']+)'\]", text))
    assert read == {
        names.MANAGED_BY,
        "pod-security.kubernetes.io/enforce",
        "pod-security.kubernetes.io/enforce-version",
    }
    assert set(re.findall(r"orValue\(''\) == '(\w+)'", text)) == {names.US, namespaces.LEVEL}


def test_a_second_portals_copy_has_names_of_its_own_throughout():
    """By the command on the page."""
    command = next(one for one in re.findall(r"```\n(.*?)```", PAGE, re.DOTALL) if "sed" in one)
    done = subprocess.run(
        ["sh", "-euc", command.replace("kubectl apply -f -", "cat; echo ---")],
        cwd=ROOT, capture_output=True, text=True, timeout=30, check=True,
    )  # fmt: skip
    copied = [one for one in yaml.safe_load_all(done.stdout) if one]
    assert len(copied) == len(RIGHTS) + 2
    whole = "\n".join(yaml.safe_dump(one) for one in copied)
    # The label says who made a thing, whichever portal it was.
    assert re.findall(r".*yardmaster.*", re.sub(r"== '+yardmaster'+", "", whole)) == []
    assert whole.replace("trials", "yardmaster") == "\n".join(yaml.safe_dump(one) for one in [POLICY, BINDING, *RIGHTS])
