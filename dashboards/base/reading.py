"""Read a whole store into memory, or what filters leave of it: a million cells in a few hundred MB."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from omb_py.dashboards.base import series
from omb_py.dashboards.base.theme import Facts
from omb_py.dashboards.base.view import plural
from omb_py.results.compare.tags import COMPARE_SIDE
from omb_py.results.store.filters import TAGS, Filter, parse_filter
from omb_py.results.store.paths import OnSkip
from omb_py.results.store.read import load_encoded, to_frame

Codes = NDArray[np.integer[Any]]
Coded = tuple[Codes, list[dict[str, str]]]  # the number of its map for each row, -1 for null, and the maps


@dataclass(slots=True)
class StoreSelection:
    """Filters; empty is everything."""

    columns: dict[str, list[str]] = field(default_factory=dict)
    """Column -> any of these values, for :func:`omb_py.load`."""
    tags: dict[str, list[str]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.columns or self.tags)

    def text(self) -> str:
        """The filters in the form in which a user types them."""
        parts = [Filter(name, value).text() for name, values in self.columns.items() for value in values]
        parts += [Filter(TAGS, value, name).text() for name, values in self.tags.items() for value in values]
        return " ".join(parts)

    def fits(self, tags: Mapping[str, str]) -> bool:
        """True for a cell with these tags; the columns are filtered when the store is read."""
        return all(tags.get(name) in values for name, values in self.tags.items())


def why_nothing(store: Path, skipped: Sequence[tuple[str, str]]) -> str:
    """Why a store has no cell at all: it is empty, or its files cannot be read; the first of them has its reason."""
    if skipped:
        path, why = skipped[0]
        return f"The store {store} has {plural(len(skipped), 'file')} that this omb-py cannot read: {path}: {why}."
    return f"The store {store} is empty. To measure something: omb-py allreduce -n 2 --store {store}"


def parse(filters: Iterable[str]) -> StoreSelection:
    """Filters from the texts of :func:`omb_py.results.store.filters.parse_filter`; the same column or tag twice means
    any of the values.

    Raises UsageError as that function does, and on a column that holds lists.

    >>> parse(["benchmark=bw", "ranks=2", "ranks=4"]).columns
    {'benchmark': ['bw'], 'ranks': ['2', '4']}
    """
    selection = StoreSelection()
    for each in map(parse_filter, filters):
        if each.tag:
            selection.tags.setdefault(each.tag, []).append(each.value)
        else:
            selection.columns.setdefault(each.column, []).append(each.value)
    return selection


MAPS = ("tags", "parameters")
_PAIR, _NEXT = "\x1f", "\x1e"
"""Between a key and its value, and between pairs: control characters, which no key has."""
_WHO = ("run_id", "library", "library_version", "binding")


def read_prepared(
    store: Path, columns: Sequence[str], on_skip: OnSkip | None = None, selection: StoreSelection | None = None
) -> pd.DataFrame:
    """What :func:`omb_py.dashboards.base.series.prepared` makes of the cells of a store, texts as categories.

    Args:
        store: the folder.
        columns: columns of the store; :data:`MAPS`, ``date`` and those of the prepared rows' tags among them.
        on_skip: called with the path and the reason for each file that cannot be read.
        selection: the rows to read; all when None.

    Raises:
        UsageError: there is no such folder, or a filter has an impossible value.
    """
    chosen = selection or StoreSelection()
    maps, table = _read(store, columns, on_skip, chosen.columns)
    if chosen.tags:
        kept = _select_rows(chosen, *maps["tags"])
        maps = {name: (codes[kept], texts) for name, (codes, texts) in maps.items()}
        table = table.filter(kept)
    frame = to_frame(table)
    for name in [name for name in frame if frame[name].dtype.name == "category"]:
        frame[name] = _texts(frame[name].cat.codes.to_numpy(), list(frame[name].cat.categories))
    codes, parameters = maps["parameters"]
    frame["parameters"] = _texts(codes, [*map(series.parameters_text, parameters)])
    frame["tags"] = _tags(frame, *maps["tags"])
    del table
    pa.default_memory_pool().release_unused()  # what was decoded does not lie beside what is computed from it
    return series.compact(series.with_means(frame))


def _select_rows(selection: StoreSelection, codes: Codes, maps: Sequence[Mapping[str, str]]) -> NDArray[np.bool_]:
    """Which rows fit: all tags that occur are looked at once."""
    fits = [selection.fits(tags) for tags in (*maps, {})]  # the last one is that of -1
    kept: NDArray[np.bool_] = np.array(fits)[codes]
    return kept


def _read(
    store: Path, columns: Sequence[str], on_skip: OnSkip | None, filters: Facts
) -> tuple[dict[str, Coded], pa.Table]:
    """The maps as :func:`_distinct` has them, and the other columns, texts as dictionaries."""
    table = load_encoded(store, columns, on_skip, filters)
    pa.default_memory_pool().release_unused()  # else what was decoded stays beside what is made of it
    maps = {name: _distinct(table[name]) for name in MAPS}
    table = table.drop_columns(list(MAPS))
    for at, name in enumerate(table.column_names):
        table = table.set_column(at, name, _encode_text(table[name]))
    return maps, table


def _encode_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.dictionary_encode().unify_dictionaries() if pa.types.is_string(column.type) else column


def _distinct(column: pa.ChunkedArray) -> Coded:
    texts = []
    for chunk in column.chunks:
        pairs = pc.binary_join_element_wise(chunk.keys, pc.fill_null(chunk.items, ""), _PAIR)
        joined = pc.binary_join(pa.ListArray.from_arrays(chunk.offsets, pairs), _NEXT)
        texts.append(joined.dictionary_encode())
    if not texts:
        return np.array([], dtype=np.int32), []
    whole = pa.chunked_array(texts).unify_dictionaries().combine_chunks()
    whole = whole if isinstance(whole, pa.DictionaryArray) else whole.chunk(0)
    maps = [dict(pair.split(_PAIR, 1) for pair in text.split(_NEXT) if pair) for text in whole.dictionary.to_pylist()]
    return whole.indices.to_numpy(), maps


def _texts(codes: Codes, texts: Sequence[str]) -> pd.Categorical:
    """Texts by number, -1 for null, of which several may be the same, as categories in their order."""
    categories = pd.Index(sorted(set(texts)), dtype=object)
    places = np.append(categories.get_indexer(pd.Index(texts, dtype=object)), -1)  # the last one is that of -1
    return pd.Categorical.from_codes(places[codes], categories=categories)


def _tags(frame: pd.DataFrame, codes: Codes, maps: Sequence[Mapping[str, str]]) -> pd.Categorical:
    """The text of the tags that tell a reader something, as :func:`omb_py.dashboards.base.series.prepared` has it."""
    sided = np.isin(codes, [code for code, tags in enumerate(maps) if COMPARE_SIDE in tags])
    rows = frame.loc[sided, list(_WHO)].assign(code=codes[sided]).drop_duplicates()
    runs = series.told_by_tag(rows.assign(tags=[maps[code] for code in rows["code"]]))
    by_tag = frame["run_id"].isin(runs).to_numpy(dtype=bool)
    texts = [series.tags_text(tags, sided) for sided in (False, True) for tags in maps]
    return _texts(codes + len(maps) * by_tag, texts)
