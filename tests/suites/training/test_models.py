"""Models as they are trained: published parameter counts, and what a hook in torch's DDP sees of their gradients."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from omb_py.suites.training.settings import MODELS, parse_training
from omb_py.suites.workloads import buckets
from omb_py.suites.workloads.data_parallel import ddp_buckets, gradient_bytes
from omb_py.suites.workloads.models import model
from tests.support.optional import needs_torch
from tests.support.tiers import few_quick

pytestmark = needs_torch
SMALL = {"mlp": "mlp:batch=2", "resnet50": "resnet50:batch=2,image=64", "gpt2-124m": "gpt2-124m:layers=1,seq=8"}
FIRST, CAP = buckets.DDP_FIRST_BYTES, buckets.DDP_CAP_BYTES


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_parameters_are_the_published_ones_in_their_order(name: str) -> None:
    import torch

    from omb_py.suites.training.loop import build

    with torch.device("meta"):
        net = build(parse_training(name))
    assert [p.numel() for p in net.parameters()] == [tensor.elements for tensor in model(name).tensors]
    published = {"mlp": 669_706, "resnet50": 25_557_032, "gpt2-124m": 124_439_808}
    assert sum(p.numel() for p in net.parameters()) == published[name]


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_units_are_those_that_the_workload_gathers(name: str) -> None:
    """Those of FSDP; of GPT-2 embedding and last norm are what is left, one unit more."""
    import torch

    from omb_py.suites.training.loop import build, units

    with torch.device("meta"):
        found = [sum(p.numel() for p in part.parameters()) for part in units(build(parse_training(name)))]
    wanted = [n for unit, n in model(name).units if name != "gpt2-124m" or unit.startswith("layer")]
    assert found == wanted


def test_attention_looks_at_earlier_tokens_only() -> None:
    import torch

    from omb_py.suites.training.loop import Gpt2
    from omb_py.suites.workloads.models import Shape

    torch.manual_seed(1)
    net = Gpt2(Shape(2, 8, 2, 6, 11, "gpt2"), 2)
    tokens = torch.tensor([[1, 2, 3, 4, 5, 6]])
    with torch.no_grad():
        one = net(tokens)
        tokens[0, 4] = 9
        other = net(tokens)
    assert one.shape == (6, 11)
    same = (one == other).all(dim=1).tolist()
    assert same[:4] == [True] * 4 and not any(same[4:])


@pytest.fixture
def group() -> Iterator[Any]:
    """A process group of one rank, which computes with one thread: more wait for each other on a busy machine."""
    import torch
    import torch.distributed as dist

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield dist
    dist.destroy_process_group()
    torch.set_num_threads(threads)


def reduced(net: Any, batch: tuple[Any, Any], iterations: int, unused: bool) -> list[list[int]]:
    """Bytes of the buckets that a hook sees in each iteration."""
    import torch

    seen: list[int] = []

    def hook(state: Any, bucket: Any) -> Any:
        seen.append(bucket.buffer().nbytes)
        done = torch.futures.Future()
        done.set_result(bucket.buffer())
        return done

    hook.__annotations__.clear()  # torch compares them with its classes, and these are texts
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # find_unused_parameters found none
        wrapped = torch.nn.parallel.DistributedDataParallel(net, find_unused_parameters=unused)
        wrapped.register_comm_hook(None, hook)
        found = []
        for _ in range(iterations):
            seen.clear()
            torch.nn.functional.cross_entropy(wrapped(batch[0]), batch[1]).backward()
            found.append(list(seen))
    return found


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", few_quick(sorted(MODELS, reverse=True)))
def test_a_hook_in_torchs_ddp_sees_the_buckets_of_the_workload(name: str, group: Any) -> None:
    import torch

    from omb_py.suites.training.loop import batch_of, build

    what = parse_training(SMALL[name])
    batch = batch_of(what, torch.Generator().manual_seed(0))
    net = build(what)
    sizes = [p.nbytes for p in net.parameters()]
    if name != "gpt2-124m":  # of which there are fewer layers here
        assert sizes == list(gradient_bytes(name, "float32"))
        assert buckets.ddp(sizes, "rebuilt") == list(ddp_buckets(name, "float32", "rebuilt", FIRST, CAP))
    rebuilt = buckets.ddp(sizes, "rebuilt")
    rest = 2 if name == "mlp" else 1
    assert reduced(net, batch, 1 + rest, False) == [buckets.ddp(sizes, "first"), *[rebuilt] * rest]
    if name != "resnet50":  # the rule is the same, and it takes its time
        assert reduced(net, batch, rest, True) == [buckets.ddp(sizes, "unused")] * rest
    assert len(rebuilt) > 1, "large enough to show a difference"
