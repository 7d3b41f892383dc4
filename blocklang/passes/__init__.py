"""IR to IR: the passes, the schedule, and the pipeline (`pipeline`) that runs them in order."""
