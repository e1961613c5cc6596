"""``omb-py train`` and ``omb-py replay``: a real step of training, and a recorded one as a workload."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any

import click

from omb_py.backends.registry import capabilities_of
from omb_py.cli.commands.benchmark import MeasuringPage, run_measuring
from omb_py.cli.help import ParsedType, tool_option
from omb_py.cli.option_params import measuring_options
from omb_py.engine.program.benchmark import Benchmark
from omb_py.errors import OK, UsageError, nearest
from omb_py.options.readers import Reader, whole, word
from omb_py.results.dialects.registry import OF_TRAININGS
from omb_py.suites import find
from omb_py.suites.training.benchmark import ITERATIONS, TRAIN, WARMUP
from omb_py.suites.training.frameworks import Torch, find_framework, frameworks, layouts
from omb_py.suites.training.settings import BACKENDS, MODELS, parse_training, text_of
from omb_py.suites.workloads.families import parse_workload
from omb_py.suites.workloads.traces.replay import inline_file
from omb_py.suites.workloads.traces.timeline import read_timeline

FORMS = (OF_TRAININGS.name, "table", "csv", "json")
_SHARED = tuple(
    "ranks hosts launcher launcher_args time_limit launches timeout quiet store no_store tags debug".split()
)
_STEP_S = 600.0
"""A rank makes no progress that can be seen within a step, and one of a large model may take minutes."""
_SAID_OF_STEPS = {
    "time_limit": "Begin no iteration after so long: 30, 500ms, 2m. (default: none)",
    "timeout": f"End the run when a rank ends no step for so long. (default: {_STEP_S:g}s)",
}
_OF_MODELS = {
    "image": "Of resnet50: pixels of an image's side. (default: 224)",
    "seq": "Of gpt2-124m: tokens of a sequence. (default: 1024)",
    "layers": "Of gpt2-124m: layers. (default: 12)",
}
_EXAMPLES = (
    "omb-py train mlp -n 2",
    "omb-py train resnet50 -n 4 --batch 8",
    "mpirun -n 4 omb-py train gpt2-124m --parallel fsdp",
    "omb-py train mlp -n 2 --trace step.json",
    "omb-py replay step.json --backend gloo -n 2",
)


def train_command() -> click.Command:
    trained, repeated = partial(tool_option, "What is trained"), partial(tool_option, "How often")
    own: list[click.Parameter] = [
        click.Argument(["model"], type=ParsedType(Reader("model", _model, tuple(MODELS))), metavar="|".join(MODELS)),
        trained(
            "--framework NAME",
            f"What trains: {', '.join(frameworks())}. (default: {Torch.name})",
            Reader("framework", lambda text: find_framework(text.strip().lower()).name, tuple(frameworks())),
        ),
        trained(
            "--parallel KIND",
            "torch: ddp (DistributedDataParallel) or fsdp (fully_shard); deepspeed: zero1, zero2 or zero3; "
            "tensorflow: mirrored (MultiWorkerMirroredStrategy). (default: ddp, zero1, mirrored)",
            word("kind", tuple(layouts())),
        ),
        trained(
            "--backend NAME",
            f"PyTorch's process group: {', '.join(BACKENDS)} (a PyTorch built with MPI). (default: {BACKENDS[0]})",
            word("backend", BACKENDS),
        ),
        trained("--batch N", "Samples per rank and step. (default: 32; gpt2-124m 1)", whole("batch", 1)),
        *(trained(f"--{name} N", text, whole(name, 1)) for name, text in _OF_MODELS.items()),
        trained(
            "--trace FILE",
            "Write a Kineto trace of one step of rank 0, after those that are timed. (default: none)",
            _file,
        ),
        _timeline_option("Draw the step that --trace records"),
        repeated(
            "-i --iterations N", "Iterations, each a line of the results.", whole("iterations", 1), default=ITERATIONS
        ),
        repeated("--steps N", "Steps of an iteration. (default: 10)", whole("steps", 1)),
        repeated("-x --warmup N", "Steps before the timed ones.", whole("warm-up", 0), default=WARMUP),
        tool_option(
            "Output", "--format FORM", f"{', '.join(FORMS)}.", word("format", FORMS), default=OF_TRAININGS.name
        ),
    ]
    shared = [param for param in measuring_options(TRAIN) if param.name in _SHARED]
    for param in shared:
        if isinstance(param, click.Option) and param.name in _SAID_OF_STEPS:
            param.help = _SAID_OF_STEPS[param.name]
    return MeasuringPage(
        "train",
        train_request,
        params=[*own, *shared],
        callback=run_train,
        help="Train a model, data parallel or sharded, on synthetic data. Prints samples a second as Horovod's "
        "synthetic benchmark does; the exposed communication, that is what a step takes beyond the same step without "
        "communication; and the communication calls of a step beside those that the layout's workload predicts."
        "\n\nStarts its ranks as a benchmark does, or joins those of a launcher "
        "(docs/workloads/training.md).",
        examples=_EXAMPLES,
    )


def _model(text: str) -> str:
    name = text.strip().lower()
    if name not in MODELS:
        raise UsageError(f"unknown model {text!r}: {nearest(name, MODELS)}")
    return name


def _file(text: str, option: str = "--trace", example: str = "step.json") -> Path:
    path = Path(text).expanduser().absolute()
    if not text.strip() or path.is_dir():
        raise UsageError(f"{option} needs a file, not {text!r}: {option} {example}")
    if not path.parent.is_dir():
        raise UsageError(f"{option} {text}: there is no folder {path.parent}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise UsageError(f"{option} {text} cannot be written")
    return path


def _timeline_option(what: str) -> click.Option:
    return tool_option(
        "Output",
        "--timeline FILE",
        f"{what}: when it computed, communicated, and had communication exposed. FILE ends with .html. (default: none)",
        _picture,
    )


def _picture(text: str) -> Path:
    if Path(text).suffix != ".html":
        raise UsageError(f"--timeline {text}: a figure, so write FILE.html")
    return _file(text, "--timeline", "step.html")


def draw_timeline(trace: Path, out: Path) -> None:
    """Write the timeline of a Kineto trace, and say what it shows. Raises UsageError where the trace has none."""
    from omb_py.dashboards.figures.step_timeline import step_timeline
    from omb_py.dashboards.report.html_page import Section, document

    timeline = read_timeline(trace)
    busy = {lane: timeline.busy(lane) for lane in timeline.lanes}
    view = step_timeline(timeline.lanes, busy, timeline.end)
    section = Section("timeline", None, views=[view])
    out.write_text(document(trace.name, "one step of one rank", [section], kind="timeline"))
    shares = ", ".join(f"{lane} {us / 1000:.2f} ms" for lane, us in busy.items())
    click.echo(f"omb-py: a step of {timeline.end / 1000:.2f} ms, {shares}: {out}", err=True)


def train_request(
    model: str, iterations: int, timeline: Path | None = None, **given: object
) -> tuple[Benchmark, dict[str, object]]:
    """The benchmark and its values. Raises UsageError where options and model, or a timeline and no trace, disagree."""
    keys = ("framework", "parallel", "backend", "batch", "image", "seq", "layers", "steps", "trace")
    asked = {key: value for key in keys if (value := given.pop(key)) is not None}
    for key in asked:
        if key not in MODELS[model]:
            takers = ", ".join(name for name, known in MODELS.items() if key in known)
            raise UsageError(f"{model} takes no --{key}: for {takers}")
    if timeline is not None and "trace" not in asked:
        raise UsageError("--timeline draws the step that --trace records: add --trace step.json")
    text = text_of(model, asked)
    what = parse_training(text)
    launched_over = next(name for name, known in capabilities_of().items() if known.process_group)
    workload = text_of(model, what.values)
    conduct = {"iterations": str(iterations), "timeout": given.pop("timeout", None) or _STEP_S}
    return TRAIN, {**given, **conduct, "backends": (launched_over,), "workload": workload}


def run_train(**given: Any) -> int:
    code = run_measuring(*train_request(**given))
    if given["timeline"] is not None and code == OK:
        draw_timeline(given["trace"], given["timeline"])
    return code


def replay_command() -> click.Command:
    step, option = find("step"), partial(tool_option, "What is replayed")
    own: list[click.Parameter] = [
        click.Argument(["trace"], metavar="TRACE"),
        option("--skip-unknown", "Leave out calls that cannot be replayed. (default: off)"),
        option(
            "--wait WHEN",
            "end: calls may overlap the rest of the step; now: each is waited for at once.",
            word("word", ("end", "now")),
            default="end",
        ),
        option(
            "--compute TIME",
            "Computing of the step, as 5ms; auto: as long as all calls take one by one.",
            str,
            default="auto",
        ),
        option("--scale F", "All sizes times this, as 1/64.", str, default="1"),
        _timeline_option("Draw the recorded step, if it is a Kineto trace"),
    ]
    return MeasuringPage(
        "replay",
        replay_request,
        params=[*own, *(param for param in measuring_options(step) if param.name != "workload")],
        callback=run_replay,
        help="The communication of a recorded step as a workload: a Kineto or execution trace of PyTorch, a Chakra "
        "trace of MLCommons, or param's basic list. The same calls with the same bytes, measured as omb-py step does "
        "(docs/workloads/replay.md).",
        examples=(_EXAMPLES[-1], "omb-py replay step.json -n 4 -c"),
    )


def replay_request(
    trace: str, skip_unknown: bool, wait: str, compute: str, scale: str, timeline: Path | None = None, **given: object
) -> tuple[Benchmark, dict[str, object]]:
    """The benchmark and its values. Raises UsageError where the trace cannot be read."""
    words = {"trace": inline_file(f"@{trace}"), "wait": wait, "compute": compute, "scale": scale}
    if skip_unknown:
        words["unknown"] = "skip"
    defaults = {"wait": "end", "compute": "auto", "scale": "1"}
    text = ",".join(f"{key}={value}" for key, value in words.items() if defaults.get(key) != value)
    return find("step"), {**given, "workload": parse_workload(f"replay:{text}").text}


def run_replay(**given: Any) -> int:
    if given["timeline"] is not None:
        draw_timeline(Path(given["trace"]), given["timeline"])
    return run_measuring(*replay_request(**given))
