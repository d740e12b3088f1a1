"""What a task must receive so that it finds its peers: TF_CONFIG, the classic flags, and a few variables.

Pure, standard library, Python 3.8 and newer: the runner imports it inside a task, the core (`yardmaster.job.strategy`)
imports it for previews, so that there is one implementation. Not here: where addresses come from (the engine).

`strategy` and `role` are the words of the job specification; `cluster` maps a role to its `host:port` list, in order
of index, without the evaluator.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Sequence

BETWEEN_GRAPH = "between_graph"
PARAMETER_SERVER = "parameter_server"
MULTI_WORKER_MIRRORED = "multi_worker_mirrored"
BATCH = "batch"
IN_GRAPH = "in_graph"
"""The tasks run a server of ours in the place of a script."""
SERVICE = "service"
"""The one task serves a port for users, through the portal."""
SPARK = "spark"
"""The script is the driver of a Spark application, and the other tasks are its executors."""


def tf_config(
    strategy: str, cluster: Mapping[str, Sequence[str]], role: str, index: int, replicas_total: int
) -> Optional[Dict[str, Any]]:
    """The value of TF_CONFIG as a dict, or None where it must not be set: a job of one task, or of no strategy.

    The evaluator is never part of the cluster map, but still learns that it is the evaluator. A job without a chief
    role keeps its worker list as it is: TensorFlow takes worker 0 for the chief.
    """
    if strategy not in (BETWEEN_GRAPH, PARAMETER_SERVER, MULTI_WORKER_MIRRORED, IN_GRAPH) or replicas_total <= 1:
        return None
    servers = {name: list(cluster[name]) for name in ("chief", "worker", "ps") if cluster.get(name)}
    return {"cluster": servers, "task": {"type": role, "index": index}, "environment": "cloud"}


def classic_flags(strategy: str, cluster: Mapping[str, Sequence[str]], role: str, index: int) -> List[str]:
    """`--ps_hosts --worker_hosts --job_name --task_index`, for between-graph scripts; empty for every other strategy.

    Scripts that read these flags know only `ps` and `worker`, and treat worker 0 as the chief. A chief role is
    therefore passed as worker 0, and the workers move up by one; all tasks of the job get the same lists.
    """
    if strategy != BETWEEN_GRAPH:
        return []
    chiefs = list(cluster.get("chief", ()))
    workers = chiefs + list(cluster.get("worker", ()))
    if role == "worker":
        index += len(chiefs)
    return [
        "--ps_hosts=" + ",".join(cluster.get("ps", ())),
        "--worker_hosts=" + ",".join(workers),
        "--job_name=" + ("ps" if role == "ps" else "worker"),
        "--task_index=%d" % index,
    ]


def distribution_environment(strategy: str, user_env: Mapping[str, str]) -> Dict[str, str]:
    """Variables that the strategy needs, without those that the user has set (to whatever value).

    Parameter servers come and go: a call to one must fail or wait as its caller says, not at once. Keras 3 cannot
    train with either TF2 strategy: `tf.keras` is Keras 2 under this variable.
    """
    wanted = {"PYTHONUNBUFFERED": "1"}
    if strategy in (PARAMETER_SERVER, MULTI_WORKER_MIRRORED, SPARK):
        wanted["TF_USE_LEGACY_KERAS"] = "1"
    if strategy == PARAMETER_SERVER:
        wanted["GRPC_FAIL_FAST"] = "use_caller"
    return {name: value for name, value in wanted.items() if name not in user_env}
