"""The cluster's namespace of a namespace of the portal: what is in it, and making, repairing and removing it."""
