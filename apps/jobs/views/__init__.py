"""The API of jobs (`jobs`, `details`), of engines, and the one that tasks speak to (`task`)."""
