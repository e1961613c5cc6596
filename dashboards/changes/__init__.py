"""What changed: which sides can be compared, where they differ beyond their noise, and what moved over time."""
