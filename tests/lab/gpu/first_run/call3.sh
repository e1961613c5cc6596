. .gpu/env.sh
N=$(python3 -c "import importlib.util as u;print(list(u.find_spec('nvidia.nccl').submodule_search_locations)[0])"); mkdir -p /tmp/nh/lib; ln -sfn $N/include /tmp/nh/include; ln -sf $N/lib/libnccl.so.2 /tmp/nh/lib/libnccl.so; ln -sf $N/lib/libnccl.so.2 /tmp/nh/lib/; C=$(dirname $(dirname $(readlink -f $(which nvcc)))); python3 -m pip install -q --no-index --no-deps --prefix /tmp/mpi .gpu/mpich*.whl
timeout 280 make -C .gpu/nccl-tests/src -j16 BUILDDIR=/tmp/nt CUDA_HOME=$C NCCL_HOME=/tmp/nh MPI=1 MPI_HOME=/tmp/mpi NVCC_GENCODE=-gencode=arch=compute_90,code=sm_90 /tmp/nt/all_reduce_perf 2>&1 | tail -3
export LD_LIBRARY_PATH=/tmp/nh/lib:$LD_LIBRARY_PATH NCCL_TESTS_DEVICE=0
A="-b 8 -e 32M -f 8 -w 1 -n 20"; mpiexec.hydra -n 1 /tmp/nt/all_reduce_perf $A | tee $OUT/nt1
timeout 90 mpiexec.hydra -n 2 sh -c "NCCL_HOSTID=h\$PMI_RANK exec /tmp/nt/all_reduce_perf $A" | tee $OUT/nt2
timeout 120 python3 -m omb_py allreduce --backend nccl -d cuda -n 2 --share-device -T float32 -m 8:32M:8 --format nccl-tests -c --store /tmp/s3 | tee $OUT/omb2
timeout 90 env OMB_PY_TEST_DEVICE=cuda python3 -m tests.support.sessions.nccl_cells '[{"benchmark":"allreduce","size":8,"timing":"pipelined","batch":20},{"benchmark":"allreduce","size":33554432,"timing":"pipelined","batch":20}]' | tee $OUT/omb1
