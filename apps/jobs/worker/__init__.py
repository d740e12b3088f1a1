"""What Celery's workers do for jobs: reconcile one, admit those that wait, find what is due. Never within a request."""
