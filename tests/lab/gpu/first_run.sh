#!/usr/bin/env bash
# First run on a machine with one GPU: facts, the check, and nccl-tests beside omb-py where its programs are given.
#   tests/lab/gpu/first_run.sh OUT [FOLDER]    OUT gets what is printed; FOLDER holds the built all_reduce_perf
# The Python on PATH has CuPy, an NCCL library, mpi4py and an MPI library. Nothing is installed or built here.
set -u
out=$1 programs=${2:-} device=${DEVICE:-cuda}
mkdir -p "$out"
{ nvidia-smi; nvidia-smi topo -m; python3 -m omb_py doctor --device "$device"; } 2>&1 | tee "$out/facts.txt"
# what fails here fails everywhere below
python3 -m tests.lab.gpu.probe "$device" 2>&1 | tee "$out/probe.txt"
# two ranks share the GPU through sockets: their bytes and columns mean something, their times nothing
NCCL_DEBUG=WARN python3 -m tests.lab.gpu.check --store "$out/store" --sizes 8,64K --iterations 10 "$device" 2>&1 | tee "$out/check.txt"
[ -n "$programs" ] || exit 0
# comparable on one GPU: one rank, 8 B (the cost of enqueueing) and 32 MiB
"$programs/all_reduce_perf" -b 8 -e 32M -f 8 -w 1 -n 20 | tee "$out/nccl-tests.txt"
cells='{"benchmark":"allreduce","size":8,"timing":"pipelined","batch":20},{"benchmark":"allreduce","size":33554432,"timing":"pipelined","batch":20}'
OMB_PY_TEST_DEVICE=$device python3 -m tests.support.sessions.nccl_cells "[$cells]" | tee "$out/omb-py.txt"
