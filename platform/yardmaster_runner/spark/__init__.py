"""A Spark standalone cluster for one job: its master runs beside the driver, and each executor task is a Spark worker.

`cluster` says what each task is told, pure; `installed` finds Spark and Java; `driver` and `executor` are the programs
that the tasks start with; `executor_logs` brings what executors print into the log of their task. Not here: which jobs
have such a cluster (the strategy `spark`), and what restarts after a loss (`yardmaster.lifecycle.restarts`).
"""
