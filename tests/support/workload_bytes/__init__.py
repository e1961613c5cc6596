"""What each workload moves, against the formula that was published or a step that was recorded."""
