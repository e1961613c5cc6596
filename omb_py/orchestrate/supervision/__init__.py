"""The parent of a launch: it receives the ranks' messages, reports failures, and ends every process."""
