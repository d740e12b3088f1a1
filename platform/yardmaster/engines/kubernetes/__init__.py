"""The Kubernetes engine: a job as a handful of objects in its user's namespace.

engine, submission  the contract
probes              short-lived pods that try what no setting tells
namespaces          the cluster's namespace: its objects, and making, repairing and removing it
observe             the watches and lists, and what their objects mean for tasks. Only reads
capacity            what nodes have, and what pods hold of it
render              what a job is on a cluster: spec and key in, plain dicts out. Pure
client              connection, verbs, errors: the one package that imports `kubernetes`
"""

from yardmaster.engines.kubernetes.engine import KubernetesEngine

__all__ = ["KubernetesEngine"]
