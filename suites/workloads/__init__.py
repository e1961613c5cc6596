"""The communication of training and inference steps, as declared lists of calls (docs/workloads).

The families are imported where a workload is read, so that no other benchmark pays for them at its start.
"""
