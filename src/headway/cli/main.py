"""The entry: choose the language, find the command, turn every error into one clear text and an exit code."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import sys
from collections.abc import Mapping, Sequence
from typing import TextIO

import click

from headway import __version__
from headway.cli.bilingual import LazyGroup, Option, option
from headway.cli.os_error import refuse_os_error
from headway.cli.plain import can_write, degrade_streams
from headway.cli.refusals import refuse
from headway.errors import CheckError, HeadwayError, UsageError
from headway.messages import LANGUAGES, Language, say, set_language
from headway.ui.output import ReaderGone, clean_streams, open_standard_files
from headway.ui.retype import paste_ready, remember_words, retype

_COMMANDS = {
    "train": ("headway.cli.train", "cli/line-train"),
    "run": ("headway.cli.run", "cli/line-run"),
    "resume": ("headway.cli.resume", "cli/line-resume"),
    "check": ("headway.cli.check", "cli/line-check"),
    "plan": ("headway.cli.plan", "cli/line-plan"),
    "tune": ("headway.cli.tune", "cli/line-tune"),
    "eval": ("headway.cli.eval", "cli/line-eval"),
    "predict": ("headway.cli.predict", "cli/line-predict"),
    "watch": ("headway.cli.watch", "cli/line-watch"),
    "board": ("headway.cli.board", "board/line"),
    "alert": ("headway.cli.alert", "alert/line"),
    "attach": ("headway.cli.attach", "cli/line-attach"),
    "node": ("headway.cli.node", "nodes/line"),
    "submit": ("headway.cli.submit", "cluster/line"),
    "stop": ("headway.cli.attach", "cli/line-stop"),
    "runs": ("headway.cli.runs", "cli/line-runs"),
    "note": ("headway.cli.note", "board/note-line"),
    "compare": ("headway.cli.compare", "cli/line-compare"),
    "diagnose": ("headway.cli.diagnose", "cli/line-diagnose"),
    "replay": ("headway.cli.replay", "replay/line"),
    "rehearse": ("headway.cli.rehearse", "rehearse/line"),
    "explain": ("headway.cli.explain", "cli/line-explain"),
    "report": ("headway.cli.report", "cli/line-report"),
    "export": ("headway.cli.export", "cli/line-export"),
    "ckpt": ("headway.cli.ckpt", "cli/line-ckpt"),
    "config": ("headway.cli.config", "cli/line-config"),
    "adopt": ("headway.cli.adopt", "cli/line-adopt"),
    "new": ("headway.cli.new", "cli/line-new"),
    "trust": ("headway.cli.trust", "cli/line-trust"),
    "completion": ("headway.cli.completion", "cli/line-completion"),
}
_HIDDEN = {
    "supervise": "headway.cli.supervise",
    "conclude": "headway.cli.conclude",
    "guide": "headway.cli.guide",
    "requeue": "headway.cli.requeue",
}
_COLORS = ("auto", "always", "never")
_ANYWHERE = ("--lang", "--color")
_TYPED_AS = "--typed-as"
_RUN_VALUE_NAMES = "gpus cpus launcher restarts on-hang hang-after oom-knob resume-with on-nan when-free grace runs out"
_RUN_BESIDE_NAMES = "name alert alert-when track nodes nodes-min nodes-address nodes-wait meet run-file"
RUN_VALUES = tuple(f"--{name}" for name in f"{_RUN_VALUE_NAMES} {_RUN_BESIDE_NAMES}".split())
"""Options of `run` that take a value: what follows one of them is not the beginning of the user's line."""


@click.command(
    "headway",
    cls=LazyGroup,
    lazy=_COMMANDS,
    hidden_lazy=_HIDDEN,
    help="cli/help",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(
    __version__, "-V", "--version", message="headway %(version)s", cls=Option, help="cli/option-version"
)
@option("--lang", type=click.Choice(LANGUAGES), help="cli/option-lang", expose_value=False)
@option("--color", type=click.Choice(_COLORS), help="cli/option-color", expose_value=False)
def root() -> None:
    """See the message `cli/help`."""


def choose_language(argv: Sequence[str], environ: Mapping[str, str]) -> Language:
    """Return the language of `--lang`, else of the locale; a config's own `lang` is applied once it is read."""
    given = _option_value(argv, "--lang")
    if given in LANGUAGES:
        return "zh" if given == "zh" else "en"
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        if environ.get(name):
            return "zh" if environ[name].lower().startswith("zh") else "en"
    return "en"


def _own_words(argv: Sequence[str]) -> Sequence[str]:
    """Return the words that are ours: all of them, but of `run` only those before the program that it is to run."""
    if "run" not in argv[:5] or next((word for word in argv if word in _COMMANDS), None) != "run":
        return argv
    for place in range(list(argv).index("run") + 1, len(argv)):
        if not argv[place].startswith("-") and argv[place - 1] not in (*_ANYWHERE, *RUN_VALUES):
            return argv[:place]
    return argv


def _option_value(argv: Sequence[str], name: str) -> str | None:
    """Return an option's value wherever it is, so that it may follow the command as well."""
    argv = _own_words(argv)
    for place, word in enumerate(argv):
        if word == name:
            return argv[place + 1] if place + 1 < len(argv) else ""
        if word.startswith(f"{name}="):
            return word.partition("=")[2]
    return None


def _without(argv: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return the arguments without the options that are read here already."""
    kept, skip = [], False
    own = _own_words(argv)
    for word in own:
        if skip:
            skip = False
        elif word in names:
            skip = True
        elif word.partition("=")[0] not in names:
            kept.append(word)
    return kept + list(argv[len(own) :])


def _apply_color(argv: Sequence[str]) -> None:
    """Settle colour once for click and rich: the option, then NO_COLOR and TERM, then the terminal."""
    given = _option_value(argv, "--color")
    if given == "always":
        os.environ.pop("NO_COLOR", None)
        os.environ["FORCE_COLOR"] = "1"
    elif given == "never" or os.environ.get("TERM") == "dumb" or os.environ.get("NO_COLOR"):
        os.environ["NO_COLOR"] = "1"
        os.environ.pop("FORCE_COLOR", None)  # rich would take it for a terminal


_PACKAGES = {"PIL": "pillow", "yaml": "pyyaml", "cv2": "opencv-python", "sklearn": "scikit-learn"}
"""Modules that are installed under another name."""


def main(argv: Sequence[str] | None = None) -> None:
    """Run one command and exit with its code."""
    given = list(sys.argv[1:] if argv is None else argv)
    if typed := _option_value(given, _TYPED_AS):  # behind a guide's script, whose reader typed that
        program, *words = shlex.split(typed)
        remember_words(words, program=program)
    else:
        remember_words(given)
    if argv is None:
        # Batch systems send them with a warning before the end; a run that is starting or ending is not to die of it.
        for signum in (signal.SIGUSR1, signal.SIGUSR2):
            signal.signal(signum, signal.SIG_IGN)
    open_standard_files()
    degrade_streams()
    is_chosen = _option_value(given, "--lang") is not None
    set_language(choose_language(given, os.environ) if can_write("中文") else "en", is_chosen=is_chosen)
    with clean_streams():
        code = _run(given)
    sys.exit(_flush(code))


def _flush(code: int) -> int:
    """Write what is left and return the exit code; the interpreter would make it 120 where nobody can be written to."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError) as err:
            if isinstance(err, OSError):
                _silence(stream)
            if code == 0 and not isinstance(err, BrokenPipeError) and stream is sys.stdout:
                code = CheckError.exit_code  # an answer that did not arrive is not an answer
    return code


def _silence(stream: TextIO) -> None:
    """Let what still waits in a stream go nowhere: whoever read it has gone."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _run(given: list[str]) -> int:
    try:
        for name, known in (("--lang", LANGUAGES), ("--color", _COLORS)):
            _check_option(name, _option_value(given, name), known)
        before = {name: os.environ.get(name) for name in ("NO_COLOR", "FORCE_COLOR")}
        _apply_color(given)
        words = _without(given, (*_ANYWHERE, _TYPED_AS))
        code = root.main(words, prog_name="headway", standalone_mode=False, obj=before)
    except HeadwayError as error:
        return _fail(error)
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.exceptions.Abort:
        return 130
    except click.ClickException as error:
        return _fail(refuse(error))
    except (BrokenPipeError, ReaderGone):
        # Whoever read our output has gone (`headway runs | head`); that is not a fault, but nothing more can be said.
        _silence(sys.stdout)
        return 0
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        refusal = refuse_os_error(error)
        return _fail(refusal) if refusal is not None else _tell_bug(error)
    except MemoryError:
        return _fail(CheckError("cli/no-memory"))
    except RuntimeError as error:
        # Python has no class of its own for a thread whose stack does not fit.
        return _fail(CheckError("cli/no-memory")) if "start new thread" in str(error) else _tell_bug(error)
    except ModuleNotFoundError as error:
        package = (error.name or "headway").partition(".")[0]
        if package == "headway":
            return _tell_bug(error)
        pip = _PACKAGES.get(package, package)
        return _fail(CheckError("cli/package-missing", module=package, package=pip, python=sys.executable))
    except Exception as error:  # border: a bug of ours is reported as one, with what a report of it needs
        return _tell_bug(error)
    return code if isinstance(code, int) else 0


def _tell_bug(error: Exception) -> int:
    import traceback  # 10 ms that only a bug has to pay

    from headway.task import locate_in_recipe

    with contextlib.suppress(OSError, ReaderGone):
        traceback.print_exc()
    if place := locate_in_recipe(error):
        facts = {"file": place[0], "line": place[1], "type": type(error).__name__, "text": error}
        return _fail(UsageError("recipes/code-failed", **facts))
    return _fail(HeadwayError("cli/bug", version=__version__))


def _check_option(name: str, value: str | None, known: Sequence[str]) -> None:
    """Refuse what the two options that may be anywhere do not know."""
    if value == "":
        raise UsageError("cli/option-needs-value", option=name, command="headway", again="")
    if value is not None and value not in known:
        again = retype(swap={f"{name}={value}": f"{name}={known[0]}", value: known[0]})
        raise UsageError("cli/not-a-choice", name=name, value=value, choices=", ".join(known), again=again)


def _fail(error: HeadwayError) -> int:
    """Print one error and what to do about it; return its exit code."""
    try:
        advice = "\n".join(filter(None, [paste_ready(error.hint()), _correct(error)]))
        text = say("cli/error", text=paste_ready(error.text()), code=error.code)
        lines = [text, say("cli/hint", text=advice) if advice else ""]
    except OSError:  # no descriptor left to read the texts with
        lines = [f"error: [{error.code}]"]
    with contextlib.suppress(OSError, ReaderGone):  # nobody reads it; the exit code still says it
        click.echo("\n".join(line for line in lines if line), err=True)
    return error.exit_code


def _correct(error: HeadwayError) -> str:
    """Return the whole command with every wrong setting put right, where each has one right spelling."""
    right = error.corrections()
    return f"{say('cli/hint-again')}\n  {retype(swap=right)}" if right else ""
