"""Assets, checks, jobs, sensors and schedules, one topic a file."""
