"""A table of every kind that OMB prints, by kind: 7.5's unless the name says another version."""

from __future__ import annotations

OMB: dict[str, str] = {}

OMB["latency"] = """
# OSU MPI Latency Test v7.5
# Datatype: MPI_CHAR.
# Size       Avg Latency(us)
1                       6.11
2                       4.58
"""
OMB["latency -c -z"] = """
# OSU MPI Latency Test v7.5
# Datatype: MPI_CHAR.
# Size       Avg Latency(us)        Validation  P50 Tail Lat(us)  P90 Tail Lat(us)  P99 Tail Lat(us)
1                       3.10              Pass              3.05              3.27              4.95
"""
OMB["latency -D"] = """
# OSU MPI Latency Test v7.5
# Datatype: MPI_CHAR.
# Size       Avg Latency(us)     Transmit Size
16                      4.97                 8
32                      3.83                16
"""
OMB["latency -T all"] = """
# OSU MPI Latency Test v7.5
# Datatype: MPI_CHAR.
# Size       Avg Latency(us)
4                       1.00
# Datatype: MPI_INT.
# Size       Avg Latency(us)
4                       1.10
# Datatype: MPI_FLOAT.
# Size       Avg Latency(us)
4                       1.20
"""
OMB["latency on a device"] = """
# OSU MPI-CUDA Latency Test v7.5
# Send Buffer on DEVICE (D) and Receive Buffer on HOST (H)
# Datatype: MPI_CHAR.
# Size       Avg Latency(us)
1                      16.11
"""
OMB["bw"] = """
# OSU MPI Bandwidth Test v7.5
# Datatype: MPI_CHAR.
# Size      Bandwidth (MB/s)
1                       2.66
"""
OMB["bw -z"] = """
# OSU MPI Bandwidth Test v7.5
# Datatype: MPI_CHAR.
# Size      Bandwidth (MB/s) P50 Tail BW(MB/s) P90 Tail BW(MB/s) P99 Tail BW(MB/s)
1                       1.61              1.92              6.49              6.94
"""
OMB["bibw"] = """
# OSU MPI Bi-Directional Bandwidth Test v7.5
# Datatype: MPI_CHAR.
# Size      Bandwidth (MB/s)
1                       1.59
"""
OMB["mbw_mr"] = """\
# OSU MPI Multiple Bandwidth / Message Rate Test v7.5
# [ pairs: 2 ] [ window size: 64 ]
# Datatype: MPI_CHAR.
# Size                  MB/s        Messages/s
1                       2.89        2894732.38
2                       5.58        2790383.86
"""
OMB["mbw_mr -R0"] = """\
# OSU MPI Multiple Bandwidth / Message Rate Test v7.5
# [ pairs: 2 ] [ window size: 64 ]
# Datatype: MPI_CHAR.
# Size                  MB/s
1                       2.89
"""
OMB["mbw_mr -V"] = """\
# OSU MPI Multiple Bandwidth / Message Rate Test v7.5
# [ pairs: 2 ] [ window size: varied ]

# Uni-directional Bandwidth (MB/sec)
# Datatype: MPI_CHAR.
#                 1           2           4           8          16          32          64         128
1              0.11        0.26        0.50        0.77        1.46        2.00        2.88        3.09

# Message Rate Profile
#                 1           2           4           8          16          32          64         128
1         110866.28   258355.79   499662.73   774020.95  1461422.44  1998847.54  2879703.21  3085271.29
"""
OMB["multi_lat"] = """
# OSU MPI Multi Latency Test v7.5
# Datatype: MPI_CHAR.
# Size       Avg Latency(us)
1                       9.40
"""
OMB["latency_mt"] = """\
# Number of Sender threads: 1 
# Number of Receiver threads: 2

# OSU MPI Multi-threaded Latency Test v7.5
# Datatype: MPI_CHAR.
# Size       Avg Latency(us)
1                      10.88
"""
OMB["latency_mp"] = """\
# Number of forked processes in sender: 2
# Number of forked processes in receiver: 2

# OSU MPI Multi-process Latency Test v7.5
# Datatype: MPI_CHAR.
# Size       Avg Latency(us)
1              10.88
"""
OMB["partitioned_latency"] = """
# OSU MPI Partitioned Latency Test v7.5
# Partitions: 8	
# Datatype: MPI_CHAR.
# Size           Overall(us)       Compute(us)    Pure Comm.(us)        Overlap(%)
8                      42.61             14.61             13.25              0.00
"""
OMB["bibw_persistent"] = """
# OSU MPI Bi-Directional Bandwidth Persistent Test v7.5
# Datatype: MPI_CHAR.
# Size      Bandwidth (MB/s)
1                       1.59
"""
OMB["allreduce -f -c -z"] = (
    "\n"
    "# OSU MPI Allreduce Latency Test v7.5\n"
    "# Datatype: MPI_INT.\n"
    "# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations        Validation"
    "  P50 Tail Lat(us)  P90 Tail Lat(us)  P99 Tail Lat(us)\n"
    "4                      24.34             18.60             32.78          20              Pass"
    "             22.35             29.12             39.41\n"
)
OMB["allreduce -c, failed"] = """
# OSU MPI Allreduce Latency Test v7.5
# Datatype: MPI_INT.
# Size       Avg Latency(us)        Validation
4                      24.12              Pass
8                      25.12              Fail
DATA VALIDATION ERROR: ./osu_allreduce exited with status 1 on message size 8.
"""
OMB["reduce -T mpi_char"] = """
# OSU MPI Reduce Latency Test v7.5
# Datatype: MPI_SIGNED_CHAR.
# Size       Avg Latency(us)
1                      24.12
"""
OMB["allreduce_persistent"] = """
# OSU MPI Allreduce Persistent Latency Test v7.5
# Datatype: MPI_INT.
# Size       Avg Latency(us)
4                      35.01
"""
OMB["alltoallw"] = """
# OSU MPI All-to-Allw Personalized Exchange Latency Test v7.5
# Datatype: MPI_CHAR.
# Size       Avg Latency(us)
1                      35.01
"""
OMB["barrier"] = """
# OSU MPI Barrier Latency Test v7.5
# Avg Latency(us)
            45.48
"""
OMB["barrier -f"] = """
# OSU MPI Barrier Latency Test v7.5
# Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations
            15.88             15.68             16.06          20
"""
OMB["iallreduce"] = """
# OSU MPI Non-blocking Allreduce Latency Test v7.5
# Overall = Coll. Init + Compute + MPI_Test + MPI_Wait

# Datatype: MPI_INT.
# Size           Overall(us)       Compute(us)    Pure Comm.(us)        Overlap(%)
4                      46.60             22.02             20.32              0.00
"""
OMB["iallreduce -f"] = (
    "\n"
    "# OSU MPI Non-blocking Allreduce Latency Test v7.5\n"
    "# Overall = Coll. Init + Compute + MPI_Test + MPI_Wait\n"
    "\n"
    "# Datatype: MPI_INT.\n"
    "# Size           Overall(us)       Compute(us)    Coll. Init(us)      MPI_Test(us)      MPI_Wait(us)"
    "    Pure Comm.(us)     Min Comm.(us)     Max Comm.(us)        Overlap(%)\n"
    "4                     482.73            157.28              3.38            321.73              0.13"
    "             50.03             40.94             65.98              0.00\n"
)
OMB["ibarrier"] = """
# OSU MPI Non-blocking Barrier Latency Test v7.5
# Overall = Coll. Init + Compute + MPI_Test + MPI_Wait

# Overall(us)       Compute(us)    Pure Comm.(us)        Overlap(%)
       155.01             33.56             31.71              0.00
"""
OMB["put_latency"] = """\
# OSU MPI_Put Latency Test v7.5
# Window creation: MPI_Win_allocate
# Synchronization: MPI_Win_flush
# Datatype: MPI_CHAR.
# Size          Latency (us)
1                       0.18
"""
OMB["get_acc_latency"] = """\
# OSU MPI_Get_accumulate latency Test v7.5
# Window creation: MPI_Win_create
# Synchronization: MPI_Win_lock/unlock
# Size          Latency (us)
1                       0.18
"""
OMB["put_bibw"] = """\
# OSU MPI_Put Bi-directional Bandwidth Test v7.5
# Window creation: MPI_Win_allocate
# Synchronization: MPI_Win_post/start/complete/wait
# Datatype: MPI_CHAR.
# Size      Bandwidth (MB/s)
1                     110.18
"""
OMB["cas_latency -c"] = """\
# OSU MPI_Compare_and_swap latency Test v7.5
# Window creation: MPI_Win_allocate
# Synchronization: MPI_Win_fence
# Datatype: MPI_CHAR.
# Size          Latency (us)        Validation
1                       0.18            passed
-------------------------------------------
Atomic Data Validation results for Rank=0:
PASSED: All 1 combinations of ops and datatypes tested passed.
-------------------------------------------
-------------------------------------------
Atomic Data Validation results for Rank=1:
PASSED: All 1 combinations of ops and datatypes tested passed.
-------------------------------------------
"""
OMB["init"] = "# OSU MPI Init Test v7.5\nnprocs: 4, min: 135 ms, max: 180 ms, avg: 153 ms\n"
OMB["hello"] = "# OSU MPI Hello World Test v7.5\nThis is a test with 4 processes\n"
OMB["neighbor_alltoallw"] = """\
Dimensions size = 2 2 
Time took to create topology graph:223.91 us.

# OSU MPI All-to-Allw Personalized Exchange Latency Test v7.5
# Datatype: MPI_CHAR.
# Size       Avg Latency(us)
1                      10.13
"""
OMB["ineighbor_allgather, a graph"] = """\
Time took to create topology graph:23.91 us.

# OSU MPI Non-blocking Neighborhood Allgather Latency Test v7.5
# Overall = Coll. Init + Compute + MPI_Test + MPI_Wait

# Datatype: MPI_CHAR.
# Size           Overall(us)       Compute(us)    Pure Comm.(us)        Overlap(%)
1                      46.60             22.02             20.32             10.00
"""
OMB["xccl allreduce"] = """\
#Using NCCL
#Using NCCL

# OSU NCCL-CUDA Allreduce Latency Test v7.5
# Size       Avg Latency(us)
1073741824           8955.18
"""
OMB["comm_dup of omb-py"] = """
# omb-py comm_dup Test v0.1.0
# Avg Latency(us)
             2.50
"""
OMB["5.3 latency"] = """\
# OSU MPI Latency Test v5.3
# Size          Latency (us)
0                       0.31
1                       0.33
"""
OMB["5.3 allreduce"] = """
# OSU MPI Allreduce Latency Test v5.3
# Size       Avg Latency(us)
4                       1.31
"""
OMB["5.3 init"] = "nprocs: 2, min: 18, max: 21, avg: 19\n"
OMB["5.7 init"] = "# OSU MPI Init Test v5.7\nnprocs: 2, min: 18 ms, max: 21 ms, avg: 19 ms\n"
OMB["6.1 bw"] = """\
# OSU MPI Bandwidth Test v6.1
# Size      Bandwidth (MB/s)
1                       2.66
"""
OMB["7.2 latency"] = """\
# OSU MPI Latency Test v7.2
# Size          Latency (us)
# Datatype: MPI_CHAR.
1                       0.33
"""
OMB["7.2 put_latency"] = OMB["put_latency"].replace("v7.5", "v7.2")
OMB["7.4 latency"] = OMB["latency"].replace("v7.5", "v7.4")
OMB["8.0b put_latency"] = "\n" + OMB["put_latency"].replace("v7.5", "v8.0b")
OMB["8.0b mbw_mr"] = """
# OSU MPI Multiple Bandwidth / Message Rate Test v8.0b
# [ pairs: 2 ] [ window size: 64 ]
# Datatype: MPI_CHAR.
# Size      Bandwidth (MB/s)        Messages/s
1                       2.89        2894732.38
"""
OMB["8.0b multi_lat"] = """
# OSU MPI Multi Latency Test v8.0b
# [ pairs: 2 ] [ window size: 1 ]
# Datatype: MPI_CHAR.
# Size       Avg Latency(us)
1                       9.40
"""
