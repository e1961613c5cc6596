# sourced at the start of every script: the machine may be bare again
export PYTHONUNBUFFERED=1
I="python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --upgrade"
if [ ! -d /tmp/impi ]; then
  $I --target /tmp/site .gpu/mpi4py*.whl .gpu/nccl4py*.whl
  python3 -c "import cuda.core as c;assert int(c.__version__.split('.')[0])>0" 2>/dev/null || $I --target /tmp/site .gpu/cuda_core*.whl
  python3 -W ignore -m tarfile -e .gpu/impi.txz /tmp/impi; chmod -R +x /tmp/impi/bin
fi
touch tests/__init__.py tests/lab/gpu/__init__.py tests/support/__init__.py  # else a package 'tests' in site-packages wins
export PYTHONPATH=/tmp/site:$PWD PATH=/tmp/impi/bin:$PATH LD_LIBRARY_PATH=/tmp/impi/lib:$LD_LIBRARY_PATH
export I_MPI_PIN=0 I_MPI_FABRICS=shm NCCL_DEBUG=WARN NCCL_MNNVL_ENABLE=0
