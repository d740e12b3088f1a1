"""How `make up` offers the Kubernetes engine on a machine with a kubeconfig, without a page of settings.

`found` reads which cluster the kubeconfig means, `choice` decides what is said, asked and chosen from facts alone,
`offer` is the thin shell in `portal.up`, and `trying` the process of its own that speaks to the cluster, so that the
keeper of the processes stays small.
"""
