"""The Kubernetes engine: a job as a handful of objects in its user's namespace.

options, names      what the operator chooses; what everything is called
shape               what of a run the cluster must remember: the record in its owner object
environment, pods,  pure builders: spec and key in, plain dicts out
workloads, manifests
podfacts, rolefacts,
facts               pure: what the API server shows, as states of tasks
capacity            pure: what nodes have and what others use of it
connection, api     the client, and the one place that knows the `kubernetes` package
watching            who changed, from one watch per kind
engine              the contract
"""

from yardmaster.engines.kubernetes.engine import KubernetesEngine

__all__ = ["KubernetesEngine"]
