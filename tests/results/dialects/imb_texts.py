"""Logs of Intel MPI Benchmarks 2021.10, shortened."""

from __future__ import annotations

MPI1 = """\
#----------------------------------------------------------------
#    Intel(R) MPI Benchmarks 2021.10, MPI-1 part
#----------------------------------------------------------------
# Date                  : Sat Nov 21 21:42:43 2026
# Machine               : x86_64
# MPI Version           : 4.1

# Calling sequence was: 

# IMB-MPI1 -iter 20 PingPong Allreduce Barrier Uniband Alltoall

# MPI_Datatype                   :   MPI_BYTE 
# MPI_Datatype for reductions    :   MPI_FLOAT 
# MPI_Op                         :   MPI_SUM  
# 
# 

# List of Benchmarks to run:

# PingPong

#---------------------------------------------------
# Benchmarking PingPong 
# #processes = 2 
# ( 2 additional processes waiting in MPI_Barrier )
#---------------------------------------------------
       #bytes #repetitions      t[usec]   Mbytes/sec
            0           20         2.31         0.00
            1           20         3.48         0.29

#----------------------------------------------------------------
# Benchmarking Allreduce 
# #processes = 4 
#----------------------------------------------------------------
       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
            0           20         0.06         0.16         0.11
            4           20         0.98         0.98         0.98

#---------------------------------------------------
# Benchmarking Barrier 
# #processes = 4 
#---------------------------------------------------
 #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
           20         0.72         0.72         0.72

#---------------------------------------------------
# Benchmarking Uniband 
# #processes = 2 
#---------------------------------------------------
       #bytes #repetitions   Mbytes/sec      Msg/sec
            1           20         0.23       231563
           16 time-out.; Time limit (secs_per_sample * msg_sizes_list_len) is over; use "-time X" or SECS_PER_SAMPLE=X

# All processes entering MPI_Finalize
"""

NBC = """\
#----------------------------------------------------------------
#    Intel(R) MPI Benchmarks 2021.10, MPI-NBC part
#----------------------------------------------------------------

#-----------------------------------------------------------------------------
# Benchmarking Iallreduce 
# #processes = 2 
#-----------------------------------------------------------------------------
       #bytes #repetitions t_ovrl[usec] t_pure[usec]  t_CPU[usec]   overlap[%]
            4           20      3034.57      2325.02      3006.57        76.40

#---------------------------------------------------
# Benchmarking Unidir_put 
# #processes = 2 
#---------------------------------------------------
#
#    MODE: AGGREGATE 
#
       #bytes #repetitions      t[usec]   Mbytes/sec
            4           20         0.65         6.11
"""
