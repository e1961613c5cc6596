"""Click commands whose ``--help`` reads like a manual page, and OMB's optional option values."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from omb_py import errors
from omb_py.errors import UsageError, nearest

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from omb_py.options.readers import Reader

    _Type = click.ParamType[object]
else:
    _Type = click.ParamType  # older versions of click know no type argument


@dataclass(frozen=True, slots=True)
class Glued:
    """An option whose value is optional and glued."""

    long: str
    bare: str
    """The value that the bare option stands for."""
    is_value: Callable[[str], bool]
    """Whether letters glued to the short option are its value, and not more short options, as in ``-cf``."""


def complete_long(name: str, shown: Collection[str], hidden: Collection[str] = ()) -> str:
    """The long option that `name` abbreviates, as getopt_long has it; `name` itself where none or several begin so.

    Hidden options count where no shown one begins so: they make no abbreviation ambiguous.

    >>> complete_long("--iter", ["--iterations", "--in-place"])
    '--iterations'
    """
    if name in shown or name in hidden:
        return name
    fits = [option for option in shown if option.startswith(name)] or [o for o in hidden if o.startswith(name)]
    return fits[0] if len(fits) == 1 else name


def unglue(
    words: Iterable[str], valued: Mapping[str, str], glued: Mapping[str, Glued], complete: Callable[[str], str] = str
) -> list[str]:
    """Rewrite command-line words.

    Args:
        valued: options that take a value, short and long (``-m``, ``--seed``), each with its long name: for a short one
            click would look for long ones like it first, and for a translation of the error.
        glued: options with an optional value, by short and long name.
        complete: makes an abbreviated long option whole.

    Returns:
        Words in which every option of `glued` is written ``--long=value``, and abbreviated options are whole.
    """
    out: list[str] = []
    rest = iter(words)
    for word in rest:
        if word == "--":
            return [*out, word, *rest]
        if word.startswith("--"):
            name, equals, value = word.partition("=")
            name = complete(name)
            if name in glued:
                out.append(f"{glued[name].long}={value if equals else glued[name].bare}")
                continue
            out.append(f"{name}{equals}{value}")
            if name in valued and not equals:
                out.extend(_next_word(rest))
        elif word.startswith("-") and len(word) > 1:
            needs_value = _short(word, valued, glued, out)
            if needs_value and (following := _next_word(rest)):
                out[-1:] = [valued[out[-1]], *following]
        else:
            out.append(word)
    return out


def _next_word(rest: Iterable[str]) -> list[str]:
    for word in rest:
        return [word]
    return []


def _short(word: str, valued: Collection[str], glued: Mapping[str, Glued], out: list[str]) -> bool:
    """Take a word of short options apart; True when its last one needs the next word as its value."""
    letters = word[1:]
    while letters:
        name, letters = f"-{letters[0]}", letters[1:]
        if name in valued:
            out.append(name + letters)
            return not letters
        option = glued.get(name)
        if option is None:
            out.append(name)
        elif letters and option.is_value(letters):
            out.append(f"{option.long}={letters}")
            return False
        else:
            out.append(f"{option.long}={option.bare}")
    return False


HELP_ALL = "--help-all"
CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}

WHOLE = "omb_py.whole_page"
"""Key in a context's `meta`: the help page has every option."""
RAW = "omb_py.words"
"""Key in a context's `meta`: the words of the command as they were typed."""
EXIT_CODES = (
    (str(errors.OK), "fine"),
    (str(errors.NEGATIVE), "a validation failed, or something is slower"),
    (str(errors.USAGE), "wrong command line or file"),
    (str(errors.ENVIRONMENT), "not possible here, or a rank died"),
    (str(errors.INTERRUPTED), "interrupted"),
)
"""Of a command without --strict."""


def exit_codes(meanings: Mapping[int, str]) -> tuple[tuple[str, str], ...]:
    """:data:`EXIT_CODES` with meanings of a command's own; an empty one leaves the code out."""
    all_meanings = dict(EXIT_CODES) | {str(code): meaning for code, meaning in meanings.items()}
    return tuple((code, all_meanings[code]) for code in sorted(all_meanings, key=int) if all_meanings[code])


ALL_EXIT_CODES = exit_codes(
    {
        errors.INCONCLUSIVE: "nothing was decided; with --strict: something was not",
        errors.NO_VERDICT: "a program that is compared did not measure",
    }
)

ENVIRONMENT = (
    ("OMB_PY_STORE", "folder of the results, unless --store is given"),
    ("OMB_PY_MPI", "your own MPI library, unless --mpi is given"),
)


class ParsedType(_Type):
    """A value made by a function that raises UsageError, or by a reader, which knows the words to complete."""

    name = "value"

    def __init__(self, reader: Reader | Callable[[str], object]) -> None:
        self.parse: Callable[[str], object] = reader if callable(reader) else reader.parse
        self.choices: Sequence[str] = () if callable(reader) else reader.choices

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> object:
        """Parse text; a value that is no text is a default and stays as it is."""
        return self.parse(value) if isinstance(value, str) else value

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        head, comma, tail = incomplete.rpartition(",")
        return [CompletionItem(head + comma + word) for word in self.choices if word.startswith(tail)]


class Grouped(click.Option):
    """An option that stands under a heading of the help page.

    `brief`: a page only names the option. `rare`: a page with ``--help-all`` shows it there alone.
    """

    brief = False

    def __init__(
        self, decls: Sequence[str], heading: str = "Other options", rare: bool = False, help: str = "", **more: Any
    ) -> None:
        super().__init__(decls, **more)
        self.help = help  # click would load inspect to indent it
        self.heading = heading
        self.rare = rare


def tool_option(
    heading: str, flags: str, text: str, reader: Reader | Callable[[str], object] | None = None, **more: Any
) -> Grouped:
    """An option of a tool.

    Args:
        flags: spellings, the parameter's name where that is another, and what stands for the value, if it takes one:
            ``-W --window-size window N``.
        text: a sentence for the help page; `default` is added unless the sentence says it.
        reader: makes the value of a text, or raises UsageError; None: a switch without a value.
        **more: further arguments of :class:`click.Option`.
    """
    words, default = flags.split(), more.get("default")
    if default not in (None, ()) and "(default: " not in text:
        text = f"{text} (default: {default})"
    if reader is None:
        return Grouped(words, heading=heading, is_flag=True, help=text, **more)
    return Grouped(words[:-1], heading=heading, metavar=words[-1], type=ParsedType(reader), help=text, **more)


class GluedOption(Grouped):
    """An option whose value is optional and glued to it: ``-z``, ``-z50,99``, ``--tail-lat=50,99``."""

    def __init__(self, decls: Sequence[str], bare: str, is_value: Callable[[str], bool], **more: Any) -> None:
        super().__init__(decls, **more)
        long = next(name for name in self.opts if name.startswith("--"))
        self.glued = Glued(long, bare, is_value)

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Show ``-z[P,P], --tail-lat``, because no blank may stand before the value."""
        if self.hidden:
            return None
        short, *long = sorted(self.opts, key=len)
        return ", ".join([f"{short}[{self.metavar}]", *long]), self.help or ""


_WITH_DASHES = ("--launcher-args",)
"""Options of benchmarks whose values are themselves options, and so begin with a dash."""


def _join_dashed_values(args: Sequence[str]) -> list[str]:
    """Join such a value with its option, which a command that passes it on does not know.

    >>> _join_dashed_values(["allreduce", "--launcher-args", "-iface eth0", "-n", "2"])
    ['allreduce', '--launcher-args=-iface eth0', '-n', '2']
    """
    joined: list[str] = []
    for word in args:
        if joined and joined[-1] in _WITH_DASHES:
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return joined


class Helped(click.Command):
    """A command whose ``--help`` is made here: click would look for translations."""

    _help: click.Option | None = None

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        """``--help`` under the names that no other option has; one object, as click compares it."""
        names = self.get_help_option_names(ctx)
        if names and self._help is None:
            self._help = _page_option([*names, "_help"], "Show this message and exit.")
        return self._help


class Page(Helped):
    """A command with sections after its options."""

    def __init__(
        self,
        name: str,
        examples: Sequence[str | tuple[str, str]] = (),
        codes: Sequence[tuple[str, str]] = EXIT_CODES,
        sections: Sequence[tuple[str, Sequence[tuple[str, str]]]] | None = None,
        **more: Any,
    ) -> None:
        """Make a page.

        Args:
            name: the command.
            examples: command lines; one in a pair with what it shows.
            codes: each exit code and what it says.
            sections: heading and lines of each section, in place of examples and exit codes.
            **more: arguments of :class:`click.Command`.
        """
        more.setdefault("context_settings", dict(CONTEXT))
        super().__init__(name, **more)
        pairs = [(example, "") if isinstance(example, str) else example for example in examples]
        shown = [("Examples", pairs)] if pairs else []
        self.sections = [*shown, ("Exit codes", codes)] if sections is None else sections

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Rewrite glued values, then parse as usual."""
        ctx.meta[RAW] = list(args)
        valued: dict[str, str] = {}
        glued: dict[str, Glued] = {}
        for param in self.params:
            if isinstance(param, GluedOption):
                glued.update(dict.fromkeys(param.opts, param.glued))
            elif isinstance(param, click.Option) and not param.is_flag:
                valued.update(dict.fromkeys(param.opts, max(param.opts, key=len)))
        if ctx.ignore_unknown_options:  # words are passed on to a benchmark, which completes its own
            return super().parse_args(ctx, unglue(_join_dashed_values(args), valued, glued))
        shown, hidden = (_long_options(self.get_params(ctx), are_hidden) for are_hidden in (False, True))
        return super().parse_args(ctx, unglue(args, valued, glued, lambda name: complete_long(name, shown, hidden)))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write options under their headings, then the sections."""
        params = self.get_params(ctx)
        rare = [param for param in params if getattr(param, "rare", False) and not getattr(param, "hidden", False)]
        if rare and any(HELP_ALL in param.opts for param in params) and not ctx.meta.get(WHOLE):
            shown = [param for param in params if isinstance(param, click.Option) and param not in rare]
            records = [param.get_help_record(ctx) for param in shown]
            with formatter.section(f"Options; {HELP_ALL} shows {len(rare)} more"):
                formatter.write_dl([record for record in records if record is not None])
            write_sections([(title, lines[:3]) for title, lines in self.sections[:1]], formatter)
            return
        write_options(params, ctx, formatter)
        write_sections(self.sections, formatter)


def _long_options(params: Iterable[click.Parameter], are_hidden: bool) -> tuple[str, ...]:
    options = (param for param in params if isinstance(param, click.Option) and param.hidden is are_hidden)
    return tuple(name for option in options for name in option.opts if name.startswith("--"))


class Verbs(click.Group):
    """A group whose unknown verb names the nearest one."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve as click does, and name the nearest verb in the error."""
        if args[0] not in self.commands and not args[0].startswith("-") and not ctx.resilient_parsing:
            raise UsageError(f"unknown verb {args[0]!r} of {self.name}: {nearest(args[0], self.commands)}")
        return super().resolve_command(ctx, args)


def write_options(params: Sequence[click.Parameter], ctx: click.Context, formatter: click.HelpFormatter) -> None:
    """Write visible options, one section for each heading, in the order of first use; `Other options` comes last."""
    headings: dict[str, list[tuple[str, str]]] = {}
    brief: list[str] = []
    for param in params:
        record = param.get_help_record(ctx)
        if record is None or not isinstance(param, click.Option):
            continue
        if getattr(param, "brief", False):
            brief.append("/".join(param.opts))
        else:
            headings.setdefault(getattr(param, "heading", "Other options"), []).append(record)
    for heading in sorted(headings, key=lambda text: text == "Other options"):
        with formatter.section(heading):
            formatter.write_dl(headings[heading])
    if brief:
        from textwrap import wrap  # for a help page alone

        with formatter.section("Options of some benchmarks, explained by omb-py BENCHMARK --help"):
            width = formatter.width - formatter.current_indent
            for line in wrap("  ".join(brief), width, break_on_hyphens=False, break_long_words=False):
                formatter.write(f"{'':{formatter.current_indent}}{line}\n")


def write_sections(sections: Sequence[tuple[str, Sequence[tuple[str, str]]]], formatter: click.HelpFormatter) -> None:
    """Write sections of (term, meaning) pairs; where no pair has a meaning, the terms are lines shown as they are."""
    for title, pairs in sections:
        with formatter.section(title):
            if all(meaning == "" for _, meaning in pairs):
                for line, _ in pairs:
                    formatter.write(f"{'':{formatter.current_indent}}{line}\n")
            else:
                formatter.write_dl(list(pairs))


def help_all_option() -> Grouped:
    """``--help-all``, which shows the rare options too."""
    return _page_option([HELP_ALL], "Show every option and exit.", whole=True)


def _page_option(names: Sequence[str], text: str, whole: bool = False) -> Grouped:
    def show(ctx: click.Context, param: click.Parameter, value: bool) -> None:
        if value and not ctx.resilient_parsing:
            if whole:
                ctx.meta[WHOLE] = True
            click.echo(ctx.get_help(), color=ctx.color)
            ctx.exit()

    return Grouped(names, is_flag=True, is_eager=True, expose_value=False, callback=show, help=text)


def debug_option(exposed: bool = False) -> Grouped:
    """``--debug``; it is acted on in :func:`omb_py.cli.main`.

    Args:
        exposed: the command gets it, too: for those that tell their ranks.
    """
    text = "Show tracebacks of errors."
    return Grouped(["--debug"], is_flag=True, expose_value=exposed, help=text, rare=True)
