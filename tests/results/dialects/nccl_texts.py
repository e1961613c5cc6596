"""Logs of nccl-tests and rccl-tests, a generation of heads each."""

from __future__ import annotations

FIRST = """\
# nThread 1 nGpus 2 minBytes 8 maxBytes 16 step: 2(factor) warmup iters: 5 iters: 20 validation: 1
# NCCL Tests compiled with NCCL 2.4
# Using devices
#   Rank  0 on       ncrh device  0 [0x05] GeForce RTX 2080 Ti
#   Rank  1 on       ncrh device  1 [0x06] GeForce RTX 2080 Ti
#   Rank  2 on       ncrh device  2 [0x07] GeForce RTX 2080 Ti
#   Rank  3 on       ncrh device  3 [0x08] GeForce RTX 2080 Ti

#                                                 out-of-place                    in-place
#      bytes             N    type      op     time  algbw  busbw      res     time  algbw  busbw      res
    10000000      10000000    char     sum    0.286  34.98  52.47    0e+00    0.303  32.98  49.46    0e+00
    10000000       2500000     int     sum    0.283  35.35  53.02    0e+00    0.298  33.53  50.29    0e+00
 Out of bounds values : 0 OK
"""

SECOND = """\
$ ./build/broadcast_perf -b 8 -e 16
# nThread 1 nGpus 2 minBytes 8 maxBytes 16 step: 2(factor) warmup iters: 5 iters: 20 validation: 1
#
# Using devices
#   Rank  0 Pid   5092 on   GENOA-06 device  0 [0x21] NVIDIA A100
#   Rank  1 Pid   5093 on   GENOA-06 device  1 [0x22] NVIDIA A100
#
#                                                     out-of-place                       in-place
#       size         count    type    root     time   algbw   busbw  error     time   algbw   busbw  error
#        (B)    (elements)                     (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
           8             2   float       0     5.63    0.00    0.00  0e+00     0.20    0.04    0.00  0e+00
          16             4   float       0     5.60    0.00    0.00  0e+00     0.19    0.08    0.00  0e+00
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 0
"""

THIRD = """\
# nThread 1 nGpus 1 minBytes 10737418240 maxBytes 10737418240 step: 2(factor) warmup iters: 5 iters: 100 agg iters: 1 validation: 1 graph: 0
#
# Using devices
#  Rank  0 Group  0 Pid    372 on inst-a device  0 [0x15] NVIDIA A100-SXM4-40GB
#  Rank  1 Group  0 Pid    373 on inst-b device  1 [0x51] NVIDIA A100-SXM4-40GB
NCCL version 2.20.5+cuda12.4
#
#                                                              out-of-place                       in-place          
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)       
     1048576        262144     float     sum      -1    105.9    9.90   17.33      0    105.7    9.92   17.37      0
 10737418240    2684354560     float     sum      -1    90330  118.87  222.88      0    91945  116.78  218.96    N/A
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 119.135 
#
"""

FOURTH = """\
# nccl-tests version 2.18.2 nccl-headers=23007 nccl-library=23007
# Collective test starting: all_reduce_perf
# nThread 1 nGpus 1 minBytes 32768 maxBytes 67108864 step: 2(factor) warmup iters: 1 iters: 20 agg iters: 1 validation: 1 graph: 0 unalign: 0
#
# Using devices
#  Rank  0 Group  0 Pid  15784 on  nid007106 device  0 [0009:01:00] NVIDIA GH200 120GB
#  Rank  1 Group  0 Pid  24926 on  nid007109 device  0 [0009:01:00] NVIDIA GH200 120GB
#
#                                                              out-of-place                       in-place          
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong 
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)         
     1048576        262144     float     sum      -1    27.76   37.78   66.11       0    27.49   38.15   66.76       0
    33554432       8388608     float     sum      -1   195.40  171.72  300.51       0   195.40  171.73  300.52     N/A
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 183.475 
#
# Collective test concluded: all_reduce_perf
"""

ALLTOALL = """\
# Collective test starting: alltoall_perf
#
#                                                              out-of-place                       in-place          
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong 
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)         
   524288000      32768000     float    none      -1  1097.14  477.87  358.40       0  1097.14  477.87  358.40     N/A
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 358.4 
#
# Collective test concluded: alltoall_perf
"""

JSON = """{"version":3,"start_time":"2026-07-09 10:11:12","args":["./all_gather_perf","--token","hunter2"],
"env":["NCCL_DEBUG=INFO","AWS_SECRET_ACCESS_KEY=hunter2","NCCL_API_TOKEN=hunter2","HTTP_PROXY=http://u:hunter2@p"],
"nccl_version":23007,
"config":{"nthreads":1,"ngpus":1,"warmup_iters":1,"iterations":20,"aggregated_iterations":2,"graph":0,"blocking_collectives":"false",
"devices":[{"rank":0,"group":0,"pid":1,"hostname":"n1","device":0,"device_hex":"0x0","device_info":"H100"},
{"rank":1,"group":0,"pid":2,"hostname":"n2","device":0,"device_hex":"0x0","device_info":"H100"}]},
"results":[{"size":1024,"count":128,"type":"float","redop":"none","root":"    -1",
"out_of_place":{"time":12.500000,"alg_bw":0.081920,"bus_bw":0.040960,"nwrong":0.000000},
"out_of_place_per_iter":{"times_us":[12.0,13.0,12.5]},
"in_place":{"time":"nan","alg_bw":0.1,"bus_bw":0.05,"nwrong":null},
"actual_iterations":20,"experiment_name":"all_gather_perf"}],
"out_of_bounds":{"count":0,"okay":"true"},"average_bus_bandwidth":{"bandwidth":0.04,"okay":"true"},"errors":0,"end_time":"2026-07-09 10:11:20"}
"""

RCCL_CSV = """\
numCycle,collective,ranks,rankspernode,gpusperrank,size,type,redop,inplace,time,algbw,busbw,#wrong
0,"AllReduce",2,8,4,2,1024,"float","sum",0,19.18415,0.0533,0.0799,"0"
0,"AllReduce",2,8,4,2,1024,"float","sum",1,19.89765,0.0514,0.0771,"N/A"
"""

RCCL_JSON = """\
[
{"numCycle":0, "name":"Broadcast", "nodes":1, "ranks":8, "ranksPerNode":8, "gpusPerRank":1, "size":1024, "type":"half", "redop":"none", "inPlace":0, "time":10.5, "algBw":0.1, "busBw":0.1, "wrong":"0"},
{"numCycle":0, "name":"Broadcast", "nodes":1, "ranks":8, "ranksPerNode":8, "gpusPerRank":1, "size":2048, "type":"half", "redop":"none", "inPlace":0, "time":11.5, "algBw":0.2, "busBw":0.2, "wrong":"3"}
]
"""

RCCL_JSON_LINES = """\
{"#wrong":"0","algBw":0.05337,"busBw":0.08006,"gpus":4,"inPlace":0,"name":"AllReduce","redop":"sum","size":1024,"time":19.18,"type":"float"}
{"#wrong":"0","algBw":0.05146,"busBw":0.07719,"gpus":4,"inPlace":1,"name":"AllReduce","redop":"sum","size":1024,"time":19.89,"type":"float"}
"""
