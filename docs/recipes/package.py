# spack repo create omb && cp package.py omb/packages/py-omb-bench/ && spack repo add omb
# spack install py-omb-bench ^openmpi
from spack.package import *


class PyOmbBench(PythonPackage):
    """OSU-style communication benchmarks in Python over MPI, NCCL/RCCL and Gloo; every sample kept."""

    pypi = "omb-bench/omb_bench-0.1.0.tar.gz"

    license("BSD-3-Clause")

    # no release yet: take the sources by `spack develop py-omb-bench@0.1.0`
    version("0.1.0")

    variant("dashboard", default=False, description="The report and the explorer")
    variant("gloo", default=False, description="Gloo, by PyTorch")

    depends_on("python@3.11:", type=("build", "run"))
    depends_on("py-setuptools@77:", type="build")
    depends_on("mpi", type="run")
    depends_on("py-click@8.1.3:", type="run")
    depends_on("py-llvmlite@0.45:", type="run")
    depends_on("py-mpi4py@4.1:", type="run")
    depends_on("py-numpy@1.26:", type="run")
    depends_on("py-pandas@2.1:", type="run")
    depends_on("py-pyarrow@20:+dataset+parquet", type="run")
    depends_on("py-rich@13:", type="run")
    depends_on("py-scipy@1.11.2:", type="run")
    depends_on("py-plotly@6.1:7", type="run", when="+dashboard")
    depends_on("py-dash@3:", type="run", when="+dashboard")
    depends_on("py-dash-ag-grid@31:", type="run", when="+dashboard")
    depends_on("py-flask-compress@1.14:", type="run", when="+dashboard")
    depends_on("py-waitress@3:", type="run", when="+dashboard")
    depends_on("py-torch@2.13.0", type="run", when="+gloo")
