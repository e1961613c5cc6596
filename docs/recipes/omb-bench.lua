-- Lmod: an installation by `python3 -m venv /opt/omb-bench/0.1.0 && /opt/omb-bench/0.1.0/bin/pip install omb-bench`
help([[OSU-style communication benchmarks in Python. Type: omb-py doctor]])
whatis("Name: omb-bench")
whatis("Version: 0.1.0")
local root = "/opt/omb-bench/0.1.0"
depends_on("openmpi")
prepend_path("PATH", pathJoin(root, "bin"))
-- the MPI library of the module above, not one that pip installed
setenv("MPI4PY_LIBMPI", pathJoin(os.getenv("MPI_HOME") or "", "lib/libmpi.so"))
