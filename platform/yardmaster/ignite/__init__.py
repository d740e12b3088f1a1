"""Clusters of Apache Ignite that namespaces have registered: where they may be, and looking at one in a process with
limits. Not here: reading rows, which tasks do (`yardmaster_runner.data.ignite_reader`)."""
