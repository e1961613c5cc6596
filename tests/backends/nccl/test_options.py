from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.backends.nccl.options import POLICIES, REGISTRATIONS, Settings, canonical_text, changed, settings_of
from omb_py.errors import UsageError


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "registration": st.sampled_from(REGISTRATIONS),
            "cta_policy": st.sampled_from(POLICIES),
            "max_ctas": st.integers(32, 64),
            "min_ctas": st.integers(1, 32),
            "algorithm": st.sampled_from(["ring", "^nvls"]),
            "aggregate": st.integers(1, 64),
            "log": st.sampled_from(["off", "tuning"]),
        },
    )
)
def test_a_text_and_its_canonical_form_say_the_same(given: dict[str, object]) -> None:
    text = " , ".join(f"{key}={value}" for key, value in reversed(given.items()))
    made = settings_of(text)
    assert settings_of(canonical_text(text)) == made == Settings(**given)  # type: ignore[arg-type]
    assert changed(made).keys() <= given.keys()
    assert canonical_text("") == ""


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("regist=window", "unknown setting 'regist' in --nccl: did you mean registration"),
        ("registration=windows", "did you mean window"),
        ("registration", "write registration=VALUE"),
        ("max_ctas=0", "max_ctas in --nccl is 1 to 64"),
        ("max_ctas=two", "max_ctas in --nccl is 1 to 64"),
        ("max_ctas=1,min_ctas=2", "min_ctas=2 is above max_ctas=1"),
        ("max_ctas=1,max_ctas=2", "stands in --nccl twice"),
        ("algorithm=r;ng", "unknown algorithm 'r;ng' in --nccl: did you mean ring"),
        ("algorithm=ring+^tree", r"\^ stands in front of all algorithms in --nccl: \^ring\+tree"),
        ("communicators=2,aggregate=2", "not both"),
    ],
)
def test_what_is_wrong_is_said(text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        settings_of(text)
