"""Why a job waits, runs or has ended, in words and small pictures, for lists, pages, the API and the command line."""
