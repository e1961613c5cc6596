"""Tables and plots in a terminal."""
