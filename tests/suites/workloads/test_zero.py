"""Stage 3 of DeepSpeed where a model is larger than what it fetches ahead; recorded steps are in test_recorded.py."""

from __future__ import annotations

from tests.suites.workloads.test_families import calls


def test_large_parameters_are_gathered_until_the_prefetch_is_full() -> None:
    """The embedding alone, then groups that reach 50 million elements."""
    own = calls("zero:stage=3,model=gpt2-124m", 2)[0]
    gathered = [2 * call.nbytes // 4 for call in own if call.label == "gather"]
    assert gathered[0] == 50_257 * 768 and len(gathered) == 3
    assert gathered[1] >= 50_000_000 > gathered[1] - 4 * 768 * 768
