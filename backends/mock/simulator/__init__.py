"""The simulation itself: clocks, costs, messages and data of ranks that all live in this process."""
