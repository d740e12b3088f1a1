"""Measurements on a real cluster (`make bench-cluster`): what jobs in pods cost its API server, and how many pass.

They run on the cluster that KUBECONFIG names, else on that of `make cluster`, in namespaces of their own that are gone
afterwards. Not here: whether pods do what they should (`tests/cluster`).
"""
