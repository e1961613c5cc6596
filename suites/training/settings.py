"""The settings of a training as text, ``MODEL:KEY=VALUE,…``. Nothing here loads PyTorch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import quote, unquote

from omb_py.errors import UsageError, nearest
from omb_py.grammar.key_values import Key
from omb_py.suites.training.frameworks import Framework, Torch, find_framework, layouts
from omb_py.suites.workloads.models import MOST_LAYERS, transformer
from omb_py.suites.workloads.settings import grammar, whole, word

BACKENDS: Final = ("gloo", "nccl", "mpi")
"""Process groups of PyTorch."""
GPT2: Final = "gpt2-124m"
"""Its name in :mod:`omb_py.suites.workloads.models`, as those of the other models."""
GPT2_TOKENS: Final = 1024
RESNET_PIXELS: Final = 32
"""Side of the image of which the last stage of ResNet-50 leaves one pixel."""
_OF_ALL: Final[Mapping[str, Key]] = {
    "framework": Key(str, Torch.name, "what trains: torch, deepspeed, tensorflow"),
    "parallel": Key(str, "", "how the work is spread"),
    "backend": word("gloo", "PyTorch's process group", *BACKENDS),
    "batch": whole(32, "samples of a rank and step"),
    "steps": whole(10, "steps of an iteration"),
    "trace": Key(unquote, "", "file for a trace of a step"),
}
MODELS: Final[Mapping[str, Mapping[str, Key]]] = MappingProxyType(
    {
        "mlp": _OF_ALL,
        "resnet50": {**_OF_ALL, "image": whole(224, "pixels of an image's side", RESNET_PIXELS)},
        GPT2: {
            **_OF_ALL,
            "batch": whole(1, "samples of a rank and step"),
            "seq": whole(1024, "tokens of a sequence"),
            "layers": whole(12, "layers", most=MOST_LAYERS),
        },
    }
)
"""Model -> its settings."""
_GPT2_OF: Final = "custom:layers={},hidden=768,heads=12,vocabulary=50257,seq=1024"
_NOT_SHOWN: Final = ("trace", "steps", "backend")
"""Settings that do not change a step, or that have a column of their own in a row."""


@dataclass(frozen=True, slots=True)
class Training:
    """A model and the settings of its training."""

    model: str
    values: Mapping[str, Any]

    def __getitem__(self, key: str) -> Any:
        return self.values[key]

    @property
    def shown(self) -> str:
        """The text of the settings that define a step, defaults included and files left out."""
        hidden = {*_NOT_SHOWN, *(["framework"] if self["framework"] == Torch.name else [])}
        return text_of(self.model, {k: v for k, v in self.values.items() if k not in hidden})

    @property
    def workload(self) -> str:
        """The workload that should make the calls of a step."""
        return find_framework(self["framework"]).workload(self["parallel"], model_of(self))


def model_of(training: Training) -> str:
    """The model as workloads name it."""
    if training.model == GPT2 and training["layers"] != transformer(GPT2).layers:
        return _GPT2_OF.format(training["layers"])
    return training.model


def text_of(model: str, values: Mapping[str, Any]) -> str:
    """The settings as ``MODEL:KEY=VALUE,…``, without empty values.

    >>> text_of("mlp", {"batch": 8, "parallel": "ddp"})
    'mlp:batch=8,parallel=ddp'
    """
    return f"{model}:{','.join(f'{key}={quote(str(value))}' for key, value in values.items() if value != '')}"


def _check_framework(framework: Framework, values: Mapping[str, Any]) -> None:
    """Raises UsageError for a layout or a process group that the framework has not."""
    layout, backend = values["parallel"], values["backend"]
    if layout not in framework.layouts:
        other = layouts().get(layout)
        what = f"use --framework {other}" if other else nearest(layout, framework.layouts)
        raise UsageError(f"framework {framework.name} has no --parallel {layout}: {what}")
    if backend not in framework.backends:
        raise UsageError(
            f"framework {framework.name} takes no --backend {backend}: use {' or '.join(framework.backends)}"
        )
    if values["trace"] and not framework.traces:
        raise UsageError(f"framework {framework.name} has no trace that can be replayed: leave --trace out")


def parse_training(text: str) -> Training:
    """The training in a text of :func:`text_of`.

    Raises:
        UsageError: an unknown model or setting, with the nearest name; a bad value.
    """
    model, _, rest = text.partition(":")
    if model not in MODELS:
        raise UsageError(f"unknown model {model!r}: {nearest(model, MODELS)}")
    values = {**grammar(model, MODELS[model]).read(rest)}
    framework = find_framework(values["framework"])
    values["parallel"] = values["parallel"] or framework.layouts[0]
    _check_framework(framework, values)
    if model == GPT2 and values["seq"] > GPT2_TOKENS:
        raise UsageError(f"{GPT2} has positions for {GPT2_TOKENS} tokens, not {values['seq']}: --seq {GPT2_TOKENS}")
    if model == "resnet50" and values["batch"] == 1 and values["image"] <= RESNET_PIXELS:
        raise UsageError(
            f"resnet50 makes one pixel of an image of {RESNET_PIXELS}, and a batch norm needs two values: "
            f"use --batch 2 or --image {RESNET_PIXELS + 1}"
        )
    return Training(model, values)


def same_training(base: str, new: str) -> str:
    """What two trainings train, if only who spreads it and how differ. Raises UsageError where it is other work."""
    first, second = map(parse_training, (base, new))
    keys = [key for key in MODELS[first.model] if key not in ("framework", "parallel", *_NOT_SHOWN)]
    if first.model != second.model:
        raise UsageError(f"trainings of {first.model} and {second.model} can never be compared: give both one model")
    wrong = next((key for key in keys if first[key] != second[key]), None)
    if (first["backend"] == "nccl") != (second["backend"] == "nccl"):
        wrong = "backend"  # a GPU and a processor
    if wrong:
        raise UsageError(f"trainings of another {wrong} can never be compared: give both the same --{wrong}")
    return text_of(first.model, {key: first[key] for key in keys})
