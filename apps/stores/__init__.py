"""The stores of this process, as the settings name them: of objects, and of log lines."""
