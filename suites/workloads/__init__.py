"""What a training or inference step asks of the network, as declared lists of calls (docs/workloads).

The families are imported where a workload is read: no other benchmark pays for them at its start.
"""
