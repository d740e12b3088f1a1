"""Changes of namespaces, members and quotas."""
