from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.results.store.redact import (
    NAMES,
    REDACTED,
    SECRET_WORDS,
    allowed_environment,
    is_allowed,
    published,
    redact_text,
    redact_words,
    stored_prefixes,
)

names = st.text(st.characters(codec="ascii", categories=["Lu", "Nd"], include_characters="_"), max_size=12)
secrets = st.text(st.characters(codec="ascii", categories=["L", "Nd"]), min_size=12, max_size=20).map(
    lambda s: f"s3{s}"
)


def test_secret_names_are_named_without_their_value() -> None:
    environ = {
        "I_MPI_PWD": "x",
        "PBS_O_CRED": "y",
        "SLURM_JWT": "eyJ.live",
        "NCCL_NET_AUTH": "a",
        "UCX_TLS": "tcp",
        "FLUX_cookie": "c",
    }
    assert allowed_environment(environ) == {
        "FLUX_cookie": REDACTED,
        "I_MPI_PWD": REDACTED,
        "NCCL_NET_AUTH": REDACTED,
        "PBS_O_CRED": REDACTED,
        "SLURM_JWT": REDACTED,
        "UCX_TLS": "tcp",
    }


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("http://me:pw@proxy:3128/x", f"http://{REDACTED}@proxy:3128/x"),
        ("https://ghp_abc@github.com/a/b", f"https://{REDACTED}@github.com/a/b"),
        ("tcp://u:p@ss@host:1", f"tcp://{REDACTED}@host:1"),
        ("ftp://u:p/w@host", f"ftp://{REDACTED}@host"),
        ("tcp://10.0.0.1:5000", "tcp://10.0.0.1:5000"),
        ("-x API_TOKEN=abc -n 4", f"-x API_TOKEN={REDACTED} -n 4"),
        ("password='a b' next", f"password={REDACTED} next"),
        ("Authorization: Bearer abc.def", f"Authorization: {REDACTED}"),
        ("/opt/keys:/usr/lib", "/opt/keys:/usr/lib"),
        ("run --password hunter2 -n 4", f"run --password {REDACTED} -n 4"),
        ("header Bearer abc.def-1 end", f"header Bearer {REDACTED} end"),
        ("scp me:pw@host:/x", f"scp me:{REDACTED}@host:/x"),
        ("I_MPI_PWD=abc", f"I_MPI_PWD={REDACTED}"),
        ("bind 10.0.0.1:5000 me@host", "bind 10.0.0.1:5000 me@host"),
        ("self,sm,tcp", "self,sm,tcp"),
    ],
)
def test_text(text: str, clean: str) -> None:
    if clean.startswith("Authorization"):
        assert "abc.def" not in redact_text(text)
    else:
        assert redact_text(text) == clean


def test_a_command_line() -> None:
    words = ["omb-py", "allreduce", "--tag", "site=x", "--token", "abc", "--api-key=abc", "-n", "4"]
    assert redact_words(words) == [
        "omb-py",
        "allreduce",
        "--tag",
        "site=x",
        "--token",
        REDACTED,
        f"--api-key={REDACTED}",
        "-n",
        "4",
    ]


@given(
    st.sampled_from([*stored_prefixes(), "HOME_", ""]),
    names,
    st.sampled_from(SECRET_WORDS),
    names,
    secrets,
    st.booleans(),
)
def test_the_value_of_a_secret_name_never_gets_through(
    prefix: str, before: str, word: str, after: str, secret: str, lower: bool
) -> None:
    name = prefix + before + (word.lower() if lower else word) + after
    assert secret not in json.dumps(allowed_environment({name: secret}))
    assert secret not in json.dumps(allowed_environment({"OMPI_MCA_x": f"{name}={secret}"}))
    assert secret not in json.dumps(redact_words(["omb-py", f"--launcher-args=-x {name}={secret}"]))


@given(st.sampled_from(stored_prefixes()), names, st.sampled_from(["http", "https", "tcp", "git+ssh"]), secrets, names)
def test_credentials_in_a_url_never_get_through(prefix: str, name: str, scheme: str, secret: str, user: str) -> None:
    value = f"{scheme}://{user}:{secret}@host.example:80/path"
    assert secret not in json.dumps(allowed_environment({prefix + name: value}))


@given(st.dictionaries(st.text(max_size=20), st.text(max_size=20)))
def test_nothing_but_the_allowed_is_kept_and_it_is_sorted(environ: dict[str, str]) -> None:
    kept = allowed_environment(environ)
    assert set(kept) == {name for name in environ if is_allowed(name)}
    assert list(kept) == sorted(kept)
    assert all(name in NAMES or name.startswith(stored_prefixes()) for name in kept)


def test_what_no_page_shows_is_left_out_at_any_depth() -> None:
    """A mutant that returned nothing for lists and values survived the tests nearest to it."""
    facts = {"nodes": [{"kernel_command_line": "root=/dev/sda", "cores": 2}, "text"], "load": 0.5, "none": None}
    assert published(facts) == {"nodes": [{"cores": 2}, "text"], "load": 0.5, "none": None}
    assert published((1, "two")) == [1, "two"]
