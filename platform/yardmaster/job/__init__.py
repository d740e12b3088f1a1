"""What a job is: its specification, its rules, its forms as JSON and as stored, its roles."""
