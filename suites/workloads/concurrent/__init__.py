"""Workloads of several things at once: requests that come and go, and two collectives."""
