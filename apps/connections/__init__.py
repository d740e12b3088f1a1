"""Data connections: clusters of Apache Ignite that a namespace has registered, what they hold, and what a job's tasks
are told of them."""
