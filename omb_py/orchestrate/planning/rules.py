"""The rules of planning. Each is applied once to what it looks at, in the order of this list."""

from __future__ import annotations

from omb_py.backends.registry import capabilities, capabilities_of, find, own_options
from omb_py.engine.devices.placement import FILLERS, PLACES
from omb_py.engine.devices.registry import HOST, find_kind
from omb_py.engine.measuring.async_timing import BATCHED
from omb_py.engine.program.benchmark import Benchmark
from omb_py.engine.program.buffers import OBJECT, ON_DEVICE
from omb_py.engine.program.dtypes import DTYPES, FACTORED, check_reduction, reduction_dtype
from omb_py.errors import UsageError, nearest
from omb_py.grammar.graphs import check_graph
from omb_py.grammar.rank_groups import groups_of_ranks, needs_hosts
from omb_py.grammar.traffic import check_traffic
from omb_py.options.measured import VARIED_WINDOWS
from omb_py.options.table import cell_options, check_ranges, check_taken, check_words, make_cell, one_of, takes
from omb_py.orchestrate.planning.cells import fewest_elements_of
from omb_py.orchestrate.planning.object_rules import OBJECT_RULES
from omb_py.orchestrate.planning.rule import RequestRule, RuleContext, UnfitRanks
from omb_py.orchestrate.planning.side_rules import SIDE_RULES


def _twice(on: RuleContext) -> str:
    asked = on.request
    for what, words in (("backend", asked.backends), ("binding", asked.bindings), ("type", asked.dtypes)):
        if (twice := next((word for word in words if words.count(word) > 1), None)) is not None:
            return f"{what} {twice!r} is given twice"
    return f"device list {asked.device} has one twice" if len(set(asked.devices)) < len(asked.devices) else ""


def _check_backends(on: RuleContext) -> str:
    return "" if on.request.backends else "no backend given: " + nearest("", on.offers)


def _unknown_backend(on: RuleContext) -> None:
    for backend in on.request.backends:
        if backend not in on.offers:
            find(backend)
        one_of("backend", backend, on.offers)


def _unknown_device(on: RuleContext) -> None:
    for device in on.request.devices:
        find_kind(device)


def _launcher(on: RuleContext) -> str:
    launching = on.request.launching
    given = (
        ("--hosts", bool(launching.hosts)),
        ("--launcher", launching.launcher not in ("auto", "none")),
        ("--launcher-args", bool(launching.launcher_args)),
    )
    flag = next((flag for flag, is_given in given if is_given), "")
    if not flag or not on.every(lambda offer: offer.in_process):
        return ""
    return (
        f"{flag}: --backend {on.request.backends[0]} simulates all ranks in this process, so no launcher starts them: "
        "leave it out"
    )


def _settings(on: RuleContext) -> str:
    """An option of one backend that holds for a whole run may be given beside other backends, or other requests."""
    for name, text in on.request.settings.items():
        option = capabilities(name).option
        if option is None:
            return f"there are no settings of backend {name!r}: {nearest(name, own_options())}"
        if not text:
            continue
        backends = set(on.request.backends)
        if (on.alone and name not in backends) if option.run_wide else backends != {name}:
            return f"--{name} is for --backend {name}: leave it out"
        lacks = (option.lacks(binding, text) for binding in on.request.bindings)
        if not option.run_wide and (why := next(filter(None, lacks), "")):
            return why
    return ""


def _batch(on: RuleContext) -> str:
    if (on.request.options.timing or on.parsed.dialect.timing) in BATCHED:
        return ""
    return f"--batch is for --timing {', '.join(sorted(BATCHED))}: leave it out"


def _timing_of_dialect(on: RuleContext) -> str:
    dialect, timing = on.parsed.dialect, on.request.options.timing
    if not dialect.timing or timing in (dialect.timing, *dialect.timings):
        return ""
    return f"--format {dialect.name} times {dialect.timing}, as {dialect.title} do, not {timing}: leave one out"


def _report(on: RuleContext) -> str:
    return "" if on.parsed.dialect.reports else "--report is for --format nccl-tests: add that, or leave it out"


def _check_shared_device(on: RuleContext) -> str:
    return "" if on.on_device else "--share-device is for ranks on devices: leave it out"


def _host_buffer(on: RuleContext) -> str:
    if not on.on_device or on.request.buffer in ("numpy", *ON_DEVICE):
        return ""
    return f"--buffer {on.request.buffer} lies on the host: leave it out with --device {on.on_device[0]}"


def _buffer_of_gpu(on: RuleContext) -> str:
    for kind in map(find_kind, on.on_device):
        if on.request.buffer in ON_DEVICE and on.request.buffer not in kind.arrays:
            instead = " or ".join(kind.arrays)
            return f"--buffer {on.request.buffer} is for NVIDIA GPUs: {instead} with --device {kind.name}"
    return ""


def _filler(on: RuleContext) -> str:
    filler = on.request.options.filler
    if on.on_device or filler == FILLERS[0]:
        return ""
    return f"-r {filler} computes on a device: add --device, or leave it out"


def _placement(on: RuleContext) -> str:
    placement, words = on.request.placement, on.request.placement.split()
    if on.request.buffer != "numpy":
        return f"buffers {placement} are not of --buffer {on.request.buffer}: leave one of them out"
    if len(words) != 2:
        return f"buffer places come in twos, sender and receiver, as H D: got {placement}"
    for word in words:
        one_of("buffer place", word, PLACES)
    if not on.on_device:
        return f"buffers {placement} are on a device: add --device, or write H H"
    if words[0] != words[1] and on.benchmark.family != "pt2pt":
        return f"{on.request.benchmark} has buffers of one kind on all ranks, not {placement}"
    return ""


def _dialect(on: RuleContext) -> None:
    options = on.request.options
    sync = options.sync or dict(on.benchmark.defaults).get("sync", "flush")
    on.parsed.dialect.check(on.benchmark.name, on.benchmark.metric.unit, sync, bool(options.groups))


def _layout(on: RuleContext) -> str:
    what = on.given("in_place", "imbalance")
    return f"-D/--ddt does not go together with {what}: leave one of them out" if what else ""


def _groups_on_arrays(on: RuleContext) -> str:
    on_device = on.request.devices != (HOST,) and not on.every(lambda offer: offer.asynchronous)
    if on.request.buffer == OBJECT or on_device:
        return "--groups is for arrays on the host, or on devices with NCCL: leave out --buffer object and --device"
    return ""


def _groups_apart(on: RuleContext) -> str:
    if on.request.options.process_sync != "roundtime":
        return ""
    return (
        "--process-sync roundtime starts all ranks together, and --groups do not wait for each other: "
        "use barrier or dissemination"
    )


def _traffic(on: RuleContext) -> str:
    what = on.given("in_place", "imbalance", "ddt")
    return f"--traffic does not go together with {what}: leave one of them out" if what else ""


def _thread_level(on: RuleContext) -> str:
    needed, level = on.benchmark.needs.thread_level, on.request.launching.thread_level
    if needed != "multiple" or level == needed:
        return ""
    return f"{on.benchmark.name} needs --thread-level {needed}, not {level}: leave it out"


def _windows(on: RuleContext) -> str:
    if on.request.options.window is None:
        return ""
    return f"-V/--vary-window takes the windows {', '.join(map(str, VARIED_WINDOWS))} in turn: leave out -W"


def _session(on: RuleContext) -> str:
    if on.every(lambda offer: offer.mpi_sessions):
        return ""
    able = " or ".join(name for name, offer in on.offers.items() if offer.mpi_sessions)
    return f"-I/--session begins MPI with a session: leave it out, or use --backend {able} alone"


def _factored(on: RuleContext) -> str:
    """A reduction that MPI does not define is refused where no backend has it."""
    ops = {op for backend in on.request.backends for op in on.offers[backend].ops}
    op = next((op for op in on.parsed.reductions if op in FACTORED and op not in ops), "")
    if not op:
        return ""
    able = " or ".join(name for name, offer in capabilities_of().items() if op in offer.ops)
    return f"--op {op} is not in backend {' or '.join(on.request.backends)}: --backend {able}, or --op sum"


def _check_reduced_type(on: RuleContext) -> None:
    if takes(on.benchmark, "op"):
        for dtype in on.parsed.dtypes:
            for op in on.parsed.reductions:
                check_reduction(reduction_dtype(dtype), op or "sum")


def _check_several_reductions(on: RuleContext) -> str:
    form, dialect = on.request.printing.format, on.parsed.dialect
    if len(on.parsed.reductions) == 1 or not dialect.name or dialect.names_reduction:
        return ""
    return f"--format {form} does not say which reduction a row is of: one --op at a time, or --format table"


def check_ranks(benchmark: Benchmark, ranks: int, option: str = "-n") -> None:
    """Raises UsageError, with the rule and the nearest admitted count, when a benchmark does not admit `ranks`.

    `option` is what gives their number.
    """
    if benchmark.ranks.admits(ranks):
        return
    near = sorted(range(1, ranks + 65), key=lambda n: (abs(n - ranks), n))
    hint = next((f": use {option} {n}" for n in near if benchmark.ranks.admits(n)), "")
    raise UsageError(f"{benchmark.name} needs {benchmark.ranks.text}, not {ranks}{hint}")


def _group_size(on: RuleContext) -> int:
    """Ranks of a group; of all where ranks alone know their nodes. Raises UsageError."""
    groups = on.request.options.groups
    return on.ranks if not groups or needs_hosts(groups) else len(groups_of_ranks(groups, on.ranks)[0])


def _groups(on: RuleContext) -> str:
    together, admitted = _group_size(on), on.benchmark.ranks
    if together == on.ranks or admitted.admits(together):
        return ""
    return (
        f"{on.benchmark.name} needs {admitted.text} in a group, not {together}: "
        f"--groups {on.request.options.groups} makes groups of {together} from {on.ranks} ranks"
    )


def _ranks(on: RuleContext) -> None:
    collective = on.benchmark.family in ("collective", "non-blocking") and on.benchmark.ranks.admits(2)
    if on.ranks == 1 and collective and all(capabilities(name).start.alone for name in on.request.backends):
        return
    check_ranks(on.benchmark, _group_size(on), on.parsed.dialect.ranks_option)


def _root(on: RuleContext) -> str:
    root, together = on.request.options.root, _group_size(on)
    if root is None or root < together:
        return ""
    return f"there is no root rank {root} among {together}: fixed:0 to fixed:{together - 1}, or rotate"


def _graph(on: RuleContext) -> None:
    check_graph(on.request.options.neighborhood, on.ranks)


def _senders(on: RuleContext) -> None:
    check_traffic(on.request.options.traffic, on.ranks)


def _check_cells(on: RuleContext) -> str:
    refuses = on.benchmark.refuses
    return next(filter(None, map(refuses, on.cells)), "") if refuses else ""


def _check_sizes(on: RuleContext) -> str:
    """The text names the smallest size that holds an element."""
    if on.cells:
        return ""
    item = min(DTYPES[dtype].itemsize for dtype in on.parsed.dtypes)
    elements = fewest_elements_of(on.benchmark, make_cell(on.benchmark, "", "", 0, **cell_options(on.request)))
    wanted = item * elements
    what = f"one element of {item} bytes" if elements == 1 else f"{elements} elements of {item} bytes"
    return f"no message size of {on.request.sizes!r} holds {what}: write -m {wanted}:{wanted}"


def _unknown_binding(on: RuleContext) -> str:
    valid = [word for backend in on.request.backends for word in on.offers[backend].bindings]
    binding = next((binding for binding in on.request.bindings if binding not in valid), "")
    if not binding:
        return ""
    asked = f"backend{'s' * (len(on.request.backends) > 1)} {', '.join(on.request.backends)}"
    return f"unknown binding {binding!r} for {asked}: {nearest(binding, valid)}"


def _fits(on: RuleContext) -> str:
    try:
        if on.benchmark.fits:
            for cell in on.cells:
                on.benchmark.fits(cell, on.ranks)
    except UsageError as error:
        return str(error)
    return ""


RULES = (
    RequestRule("word that is given twice", "words", _twice),
    RequestRule("no backend", "words", _check_backends),
    RequestRule("unknown backend", "words", _unknown_backend),
    RequestRule("unknown device", "words", _unknown_device),
    RequestRule("unknown word of an option", "words", lambda on: check_words(on.request)),
    RequestRule("settings of another backend", "words", _settings),
    RequestRule("launcher where none starts ranks", "words", _launcher),
    *SIDE_RULES,
    RequestRule("batch where calls are timed alone", "options", _batch, option="batch"),
    RequestRule("timing of another tool", "options", _timing_of_dialect, option="timing"),
    RequestRule("report of another tool", "options", _report, option="report"),
    RequestRule("shared device without a device", "options", _check_shared_device, option="share_device"),
    RequestRule("buffer on the host with a device", "options", _host_buffer),
    RequestRule("buffer that the GPU lacks", "options", _buffer_of_gpu),
    RequestRule("computing without a device", "options", _filler, option="filler"),
    RequestRule("buffer places", "options", _placement, option="placement"),
    RequestRule("option that the benchmark lacks", "options", lambda on: check_taken(on.request, on.benchmark)),
    RequestRule("number that is too small", "options", lambda on: check_ranges(on.request)),
    RequestRule("benchmark or option that the tool lacks", "options", _dialect),
    RequestRule("layout beside another one", "options", _layout, option="ddt"),
    RequestRule("groups of objects or on devices", "options", _groups_on_arrays, option="groups"),
    RequestRule("groups that start together", "options", _groups_apart, option="groups"),
    RequestRule("traffic beside another layout", "options", _traffic, option="traffic"),
    RequestRule("thread level that is too low", "options", _thread_level, option="thread_level"),
    RequestRule("windows in turn beside one", "options", _windows, option="vary_window"),
    RequestRule("session of a backend without any", "options", _session, option="session"),
    *OBJECT_RULES,
    RequestRule("reduction that no backend has", "options", _factored, option="op"),
    RequestRule("reductions that the text does not tell apart", "options", _check_several_reductions, option="op"),
    RequestRule("reduction of a type that lacks it", "options", _check_reduced_type),
    RequestRule("groups of too few ranks", "ranks", _groups, option="groups"),
    RequestRule("number of ranks", "ranks", _ranks),
    RequestRule("root that is no rank", "ranks", _root, option="root"),
    RequestRule("neighbors that are no ranks", "ranks", _graph, option="neighborhood"),
    RequestRule("traffic of other ranks", "ranks", _senders, option="traffic"),
    RequestRule("options that the benchmark refuses", "cells", _check_cells),
    RequestRule("no size that holds an element", "cells", _check_sizes),
    RequestRule("unknown binding", "sides left", _unknown_binding, option="bindings"),
    RequestRule("options that do not fit the ranks", "cells on ranks", _fits, UnfitRanks),
)
"""All rules."""
