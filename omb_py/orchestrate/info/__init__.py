"""What omb-py tells without measuring: list, explain, doctor, suite show."""
