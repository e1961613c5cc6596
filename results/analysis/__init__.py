"""What rows say over sizes, ranks and time."""
