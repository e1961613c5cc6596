. .gpu/env.sh
timeout 560 python3 -m tests.lab.gpu.check --store /tmp/store2 --sizes 8,64K --iterations 10 --limit ${LIMIT:-500} ${DEVICE:-cuda} "nccl settings" "nccl bindings" "mpi direct" "mpi managed" 2>&1 | tee $OUT/drive.txt; tar czf $OUT/store.tgz -C /tmp store2
