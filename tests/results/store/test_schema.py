from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.results.statistics.summary import COLUMNS as STATISTICS
from omb_py.results.store import schema
from tests.support.machines.mpi import run_command

DOCS = Path(__file__).parents[3] / "docs" / "store.md"


def test_the_statistics_are_columns() -> None:
    assert set(STATISTICS) <= set(schema.NAMES)


def test_the_table_in_the_docs_is_made_from_the_declaration() -> None:
    table = "".join(f"- `{c.name}` ({c.arrow}{'' if c.required else '?'}): {c.doc}\n" for c in schema.COLUMNS)
    assert table in DOCS.read_text(encoding="utf-8")


def test_the_arrow_schema_has_the_declared_types() -> None:
    import pyarrow as pa

    arrow = schema.arrow_schema()
    assert arrow.names == list(schema.NAMES)
    assert arrow.field("samples_us").type == pa.list_(pa.float32())
    assert arrow.field("started_at").type == pa.timestamp("us", tz="UTC")
    assert arrow.field("metrics").type == pa.map_(pa.string(), pa.float64())
    for column in schema.COLUMNS:
        assert column.doc, column.name
        if column.kind in ("string", "bool", "int32", "int64"):
            assert str(arrow.field(column.name).type) == column.arrow


@given(
    st.lists(st.one_of(st.floats(1e-37, 1e38), st.floats(-1e38, -1e-37), st.sampled_from([0.0, 0.1, 2.0**-20, 1e6])))
)
def test_floats_as_stored_are_those_that_numpy_prints(values: list[float]) -> None:
    assert schema.stored_floats(values) == [float(word) for word in np.asarray(values, np.float32).astype(str)]


def test_a_blank_row_has_every_column_and_nothing_in_it() -> None:
    row = schema.blank_row()
    assert list(row) == list(schema.NAMES)
    assert set(row.values()) == {None}


def test_checked_fills_in_and_names_what_is_wrong(make_row) -> None:
    row = {name: value for name, value in make_row().items() if value is not None}
    assert schema.complete_row(row) == make_row()
    with pytest.raises(ValueError, match="not a column of the store: sizes"):
        schema.complete_row({**row, "sizes": 3})
    with pytest.raises(ValueError, match="a row lacks run_id, unit"):
        schema.complete_row({**row, "run_id": None, "unit": None})


LIGHT = [
    "store.schema",
    "store.journal",
    "dialects.omb.text",
    "store.keys",
    "store.redact",
    "statistics.summary",
    "statistics.bandwidth",
    "store.recovery",
    "store.runs",
]


@pytest.mark.slow
def test_importing_the_package_and_the_schema_loads_nothing_heavy() -> None:
    code = (
        "import sys, omb_py.results\n"
        + "".join(f"import omb_py.results.{name}\n" for name in LIGHT)
        + "import omb_py.dashboards, omb_py.printing.export\n"
        + "heavy = {'numpy', 'pandas', 'pyarrow', 'scipy', 'rich', 'click', 'mpi4py', 'llvmlite'} & set(sys.modules)\n"
        "sys.exit(repr(sorted(heavy)) if heavy else 0)"
    )
    done = run_command([sys.executable, "-c", code])
    assert done.returncode == 0, done.stderr


WRITE_THEN_READ = """
import sys
from tests.results.store.writers import main
main(sys.argv[1], "run", 1)
written_without = "pandas" not in sys.modules
from omb_py.results.store.read import load, load_table
rows = load_table(sys.argv[1]).num_rows
frame = load(sys.argv[1])
import pandas
assert written_without and rows == 2 and isinstance(frame, pandas.DataFrame)
assert list(frame["samples_us"][0]) == [1.0] * 50 and str(frame["size_bytes"].dtype) == "Int64"
"""


@pytest.mark.slow
def test_a_launch_is_written_without_pandas_and_is_read_with_it_afterwards(tmp_path: Path) -> None:
    words = [sys.executable, "-c", WRITE_THEN_READ, str(tmp_path)]
    done = run_command(words, cwd=Path(__file__).parents[3])
    assert done.returncode == 0, done.stderr
