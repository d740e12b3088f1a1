"""The pod of a task of an exported job: as restricted as Pod Security asks for, with folders that it may write."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from yardmaster.job.export import tasks
from yardmaster.job.export.code import Code, items_of
from yardmaster.job.spec import Role, TrainingSpec
from yardmaster.job.strategy import server_roles
from yardmaster.quantity import exact_bytes, format_cpu

USER = 10_001
"""No user that a node or an image knows."""
TOOLS, SOURCE, CLAIM = "/job-tools", "/code-source", "/claim"
_LOCKED = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": True}


@dataclass(frozen=True)
class Pods:
    """What the pods of all roles have in common."""

    spec: TrainingSpec
    name: str
    code: Code
    image: str
    claim: str
    python: str
    is_chosen: bool
    """Whether `image` is in the place of the images that the job itself names."""
    gpu_resource: str
    cluster: tasks.Cluster

    def pod(self, role: Role, around: list[str]) -> dict[str, Any]:
        """Of a task of this role. `around`: the tool that starts its command, and what that is given."""
        spec, python = self.spec, self._image(role)[1]
        command = tasks.command_of(spec, role, self.cluster, self._folders(), python)
        if around:
            command = [python, f"{TOOLS}/{around[0]}", *around[1:], *command]
        environment = tasks.environment_of(spec, role, self.cluster, self._folders(), f"{self.name}-secrets")
        task = self._container("task", role, command, environment)
        task["workingDir"] = tasks.CODE
        if role in server_roles(spec):
            task["ports"] = [{"name": "tensorflow", "containerPort": 2222}]
        return {
            **({"subdomain": self.name} if self.cluster else {}),
            "restartPolicy": "OnFailure" if spec.retries else "Never",
            "terminationGracePeriodSeconds": max(1, int(spec.grace_period.total_seconds())),
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "securityContext": {
                "runAsNonRoot": True, "runAsUser": USER, "runAsGroup": USER, "fsGroup": USER,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "initContainers": self._before(role, environment),
            "containers": [{**task, "terminationMessagePolicy": "FallbackToLogsOnError"}],
            "volumes": self._volumes(),
        }  # fmt: skip

    def _image(self, role: Role) -> tuple[str, str]:
        """The image of the role's tasks, and the interpreter in it."""
        pinned = None if self.is_chosen else self.spec.image_of(role)
        return (self.image, self.python) if pinned is None else (pinned.reference, "python3")

    def _folders(self) -> tasks.Folders:
        if not self.claim:
            return {"data": tasks.DATA, "log": tasks.LOG, "model": tasks.MODEL}
        return {"data": f"{CLAIM}/data", "log": f"{CLAIM}/{self.name}/log", "model": f"{CLAIM}/{self.name}/model"}

    def _container(
        self, name: str, role: Role, command: list[str], environment: list[dict[str, Any]]
    ) -> dict[str, Any]:
        return {
            "name": name, "image": self._image(role)[0], "command": command, "env": environment,
            "resources": self._resources(role), "securityContext": _LOCKED, "volumeMounts": self._mounts(),
        }  # fmt: skip

    def _before(self, role: Role, environment: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """What is done before the script starts: the code is copied, packages are installed."""
        home = [one for one in environment if one["name"] in ("HOME", "PYTHONUSERBASE")]
        source = f"{CLAIM}/code" if self.claim and not self.code.fits else SOURCE
        python = self._image(role)[1]
        command = [python, f"{TOOLS}/prepare.py", source, tasks.CODE, *self._folders().values()]
        found = [self._container("prepare", role, command, home)]
        if asked := self._asked():
            pip = [
                python,
                "-m",
                "pip",
                "install",
                "--user",
                "--no-cache-dir",
                "--disable-pip-version-check",
                *asked,
            ]
            # An image whose Python belongs to its system would refuse; here it writes to a folder of the task alone.
            variables = [*home, {"name": "PIP_BREAK_SYSTEM_PACKAGES", "value": "1"}]
            found.append({**self._container("packages", role, pip, variables), "workingDir": tasks.CODE})
        return found

    def _asked(self) -> list[str]:
        if self.spec.requirements is not None:
            return [tasks.literal(one) for one in self.spec.requirements]
        return ["-r", "requirements.txt"] if self.code.has("requirements.txt") else []

    def _resources(self, role: Role) -> dict[str, Any]:
        asked = self.spec.roles[role].resources
        amounts = {"cpu": format_cpu(asked.cpu), "memory": exact_bytes(asked.memory)}
        if asked.gpus:
            amounts[self.gpu_resource] = str(asked.gpus)
        amounts |= {name: str(amount) for name, amount in asked.extended.items()}
        return {"requests": amounts, "limits": dict(amounts)}

    def _mounts(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = [
            {"name": "results", "mountPath": tasks.HOME},
            {"name": "tmp", "mountPath": "/tmp"},
            {"name": "shm", "mountPath": "/dev/shm"},
            {"name": "tools", "mountPath": TOOLS, "readOnly": True},
        ]
        if self.code.files:
            found.append({"name": "source", "mountPath": SOURCE, "readOnly": True})
        if self.claim:
            found.append({"name": "claim", "mountPath": CLAIM})
        elif self.spec.inputs:
            found.append({"name": "data", "mountPath": tasks.DATA})
        if any(one.file for one in self.spec.secrets):
            found.append({"name": "secrets", "mountPath": tasks.SECRETS, "readOnly": True})
        return found

    def _volumes(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = [
            {"name": "results", "emptyDir": {}},
            {"name": "tmp", "emptyDir": {}},
            {"name": "shm", "emptyDir": {"medium": "Memory"}},
            {"name": "tools", "configMap": {"name": f"{self.name}-tools"}},
        ]
        if self.code.files:
            items = items_of(self.code.files)
            found.append({"name": "source", "configMap": {"name": f"{self.name}-code", "items": items}})
        if self.claim:
            found.append({"name": "claim", "persistentVolumeClaim": {"claimName": self.claim}})
        elif self.spec.inputs:
            found.append({"name": "data", "emptyDir": {}})
        files = [{"key": one.name, "path": one.file} for one in self.spec.secrets if one.file]
        if files:
            secret = {"secretName": f"{self.name}-secrets", "items": files, "defaultMode": 0o440}
            found.append({"name": "secrets", "secret": secret})
        return found
