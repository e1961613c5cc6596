"""The text of a training: what it says, and what it refuses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.errors import UsageError
from omb_py.suites.training.frameworks import Torch
from omb_py.suites.training.settings import MODELS, parse_training, same_training, text_of
from omb_py.suites.workloads import models
from omb_py.suites.workloads.families import parse_workload


@given(st.sampled_from(sorted(MODELS)), st.sampled_from(Torch.layouts), st.integers(1, 1 << 20), st.text(min_size=1))
def test_what_is_written_is_read(model: str, parallel: str, batch: int, trace: str) -> None:
    found = parse_training(text_of(model, {"parallel": parallel, "batch": batch, "trace": f"/{trace}"}))
    assert (found.model, found["parallel"], found["batch"], found["trace"]) == (model, parallel, batch, f"/{trace}")
    assert parse_training(text_of(model, found.values)) == found


def test_gpt2_has_one_name_everywhere() -> None:
    assert parse_training("gpt2-124m").workload == parse_workload("ddp:model=gpt2-124m").text
    for read in (parse_training, models.model):
        with pytest.raises(UsageError, match=r"unknown model 'gpt2': did you mean gpt2-124m\?"):
            read("gpt2")


def test_trainings_that_differ_in_how_the_work_is_spread_do_the_same_work() -> None:
    assert same_training("mlp:parallel=ddp,steps=2", "mlp:parallel=fsdp") == "mlp:batch=32"
    for new in ("resnet50", "mlp:batch=2", "mlp:backend=nccl"):
        with pytest.raises(UsageError, match="can never be compared: give both"):
            same_training("mlp", new)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("resnet5", r"unknown model 'resnet5': did you mean resnet50\?"),
        ("mlp:batch=0", r"batch: '0' is not a whole number from 1 on"),
        ("mlp:parallel=fdsp", r"did you mean fsdp\?"),
        ("resnet50:image=16", r"image: '16' is not a whole number from 32 on"),
        ("gpt2-124m:seq=2048", r"positions for 1024 tokens, not 2048: --seq 1024"),
    ],
)
def test_refused(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse_training(text)
