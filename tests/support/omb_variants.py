"""Variants of options that once printed something else than C OMB 7.5, and the test that now holds each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_SCRIPTS = "tests/cli/commands/test_omb_scripts.py"
_TEXT = "tests/results/dialects/omb/test_text.py"


@dataclass(frozen=True, slots=True)
class Variant:
    """A benchmark with options, and what is printed."""

    words: str
    now: str
    """What C prints and omb-py prints too; or why not."""
    path: str
    test: str
    """The test's name."""


VARIANTS: Final = (
    Variant(
        "all of them with one set of options",
        "each ends with exit code 0",
        _SCRIPTS,
        "test_one_set_of_options_runs_through",
    ),
    Variant("`-u 3`", "accepted, with a note", _SCRIPTS, "test_one_set_of_options_runs_through"),
    Variant("`BENCHMARK -v`", "C's title", _SCRIPTS, "test_the_version_of_a_benchmark_is_its_title_as_in_omb"),
    Variant("`barrier -m 8:8`, `latency -f`, `init -c`", "accepted, with a note", _SCRIPTS, "test_a_note_says_why"),
    Variant("`mbw_mr -p 1`", "half of the ranks send, as in C, with a note", _SCRIPTS, "test_a_note_says_why"),
    Variant("`mbw_mr -V -z`", "tables without percentiles, as in C, with a note", _SCRIPTS, "test_a_note_says_why"),
    Variant(
        "`-m 0:8`",
        "begins at 1, or at one element",
        _SCRIPTS,
        "test_a_range_from_0_begins_where_a_message_means_something",
    ),
    Variant(
        "`-z99.9`, `-z1,2,3,4,5,6`", "any number, fractions too", "tests/grammar/test_values.py", "test_percentiles"
    ),
    Variant(
        "`latency -z50,99.9,100`",
        "C's widths",
        _TEXT,
        "test_percentiles_that_omb_does_not_take_keep_a_blank_before_them",
    ),
    Variant(
        "`iallreduce -z`, all non-blocking",
        "percentiles of the overall time, last",
        _TEXT,
        "test_percentiles_of_non_blocking_are_of_overall_and_stand_last",
    ),
    Variant(
        "`bw -z`",
        "percentiles of each iteration's rate, the best last",
        _TEXT,
        "test_bw_percentiles_are_of_each_iterations_rate_the_best_last",
    ),
    Variant(
        "`iallreduce`, busbw",
        "from call and wait alone",
        "tests/orchestrate/running/test_rows.py",
        "test_busbw_of_a_nonblocking_collective_is_that_of_call_and_wait_alone",
    ),
    Variant("`ineighbor_allgather`, `…alltoallv`, `…alltoallw`", "C's titles", _TEXT, "test_odd_titles"),
    Variant("`latency_mp`, `latency_mp -c`", "C's width, 10 and 18", _SCRIPTS, "test_latency_mp_forgets_its_width"),
    Variant(
        "`latency -D vect:8:4` below a block",
        "a row of 0 bytes",
        _SCRIPTS,
        "test_a_vector_that_holds_no_block_is_sent_empty",
    ),
    Variant(
        "`latency -D indx:FILE`",
        "repeated; C's once by `-D once:FILE`",
        _SCRIPTS,
        "test_pieces_of_a_file_are_repeated_or_sent_once",
    ),
    Variant(
        "`get_acc_latency`", "begins with a created window and locks", _SCRIPTS, "test_get_acc_latency_begins_as_omb_s"
    ),
    Variant(
        "`acc_latency -T all`, `fop_latency -T all`",
        "a title for each type",
        _SCRIPTS,
        "test_each_type_of_an_accumulate_has_its_title",
    ),
    Variant(
        "`put_latency`, all one-sided: the value",
        "C's mean; `--mean lap` the operation's",
        "tests/orchestrate/running/test_rows.py",
        "test_a_one_sided_mean_is_omb_s_of_the_whole_loop_unless_another_is_asked_for",
    ),
    Variant(
        "`multi_lat -z`",
        "values, where C prints heads alone",
        "tests/cli/commands/test_pt2pt_text.py",
        "test_multi_lat_with_percentiles_which_omb_forgets",
    ),
    Variant(
        "`latency_mt`, `partitioned_latency`, `mbw_mr -V`",
        "C's text",
        "tests/cli/commands/test_pt2pt_text.py",
        "test_mbw_mr_with_varied_windows",
    ),
    Variant(
        "`--device cuda` on stdout",
        "a staged run says so in its head",
        "tests/results/test_caveats.py",
        "test_the_header_of_omb_says_them_below_the_title",
    ),
)
