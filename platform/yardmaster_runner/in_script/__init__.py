"""What runs inside the script's own process, at the job's wish: copied beside `yardmaster_runner.data` (`offered`)."""
