"""Text in, meaning out."""

from __future__ import annotations

import re
from collections.abc import Sequence

from headway.adopt.command import Command
from headway.adopt.exact import QUOTED, find_command
from headway.adopt.launchers import TOOLS, is_launcher, is_python, make, recognise
from headway.adopt.manifest import read_manifest
from headway.adopt.options import is_placeholder
from headway.adopt.record import Entry, Launch, Meaning
from headway.adopt.reread import read_bash, read_clean
from headway.adopt.sbatch import read_header, variables_of
from headway.adopt.shell.follow import walk
from headway.adopt.tidy import tidy
from headway.errors import UsageError

MAX_TEXT_BYTES = 64 * 1024
_ASIDE = re.compile(
    r"(?:^|[/_.\s-])(?:server?|serving|gradio|web_?ui|controller|api|deploy|rollout|download|prepare|preparation|preprocess|"
    r"pre_?process|convert|conversion|install|setup|build|extract|tokeni[sz]e|monitor|make_?data\w*|vllm-serve|generate_data)"
    r"(?:[/_.\s-]|$)",
    re.IGNORECASE,
)
_ASIDE_BY_DATA = re.compile(
    r"(?:^|/)(?:get_\w+\.sh|write_\w+\.(?:py|sh)|create_\w*data\w*\.py|\w*datasets?\w*\.(?:py|sh)|(?:\w+_)?data(?:_\w+)?\.py)$"
    r"|(?:^|\.)datasets?$",
    re.IGNORECASE,
)
_TRAINS = re.compile(r"train|tune|sft|dpo|grpo|ppo|rlhf|lora", re.IGNORECASE)
_TELLS = re.compile(r"train|tune|test|eval|infer|predict|demo|run|start|launch|main", re.IGNORECASE)
"""A script that is called so may well be what the text is about."""
_ECHO = re.compile(r"^[ \t]*(?:echo|printf)\b([^\n]{0,400})", re.MULTILINE)
_QUESTIONS = frozenset({"help", "version", "check_build"})
_PROSE = re.compile(r"[A-Z][a-z]*")
"""A sentence begins so; a program hardly ever does."""
_COMMAND = re.compile(r"[A-Za-z_./~$][\w./~${}+-]*")


def understand(text: str, *, has_lone_command: bool = True) -> Meaning:
    """Return everything a launch line or a shell script launches. Nothing is run and no file is read.

    `has_lone_command`: a single command that is not a launcher is taken as a program of its own.
    """
    if len(text.encode("utf-8", "surrogatepass")) > MAX_TEXT_BYTES:
        raise UsageError("adopt/too-large", size=len(text) // 1024, limit=MAX_TEXT_BYTES // 1024)
    text = read_bash(text) or text
    known = read_clean(text)
    if known is not None:
        return Meaning(launches=(known,), primary=0)
    header = read_header(text)
    clean, slips = tidy(text)
    walked = walk(clean, given=variables_of(header), header=header)
    launches = _recognise_all(walked.commands) or _recognise_all(walked.spare)
    manifest = read_manifest(clean) if not launches else None
    if manifest is not None:
        launches = _recognise_all(walk(manifest).commands)
    if not launches and has_lone_command:
        launches = _last_resort(walked.commands)
    cured = sorted({*slips, *((slip.code, slip.line) for slip in walked.slips)}, key=lambda slip: slip[1])
    return Meaning(
        launches=tuple(launches),
        primary=choose_launch(launches),
        settings=tuple(walked.settings),
        slips=tuple(cured),
        announced=tuple(_ECHO.findall(clean)),
        one_line=_one_line(clean) if len(launches) == 1 else "",
        defaulted=frozenset(walked.defaulted),
        used=frozenset(walked.used),
    )


def _one_line(text: str) -> str:
    """Return a text that is one line, continued or not; comments round it left out."""
    if find_command(text) is not None:
        return text.strip()
    # A line end between quotes is a character of an argument.
    held = QUOTED.sub(lambda found: found[0].replace("\n", "\1"), text.replace("\\\n", "\0"))
    lines = [line for line in held.split("\n") if line.strip() and not line.lstrip().startswith("#")]
    return lines[0].replace("\1", "\n").replace("\0", "\\\n").strip() if len(lines) == 1 else ""


def _recognise_all(commands: Sequence[Command]) -> list[Launch]:
    launches: list[Launch] = []
    at = 0
    while at < len(commands):
        launch = recognise(commands[at])
        after = commands[at + 1] if at + 1 < len(commands) else None
        if launch is not None and launch.entry is None and not launch.args and after is not None and _is_entry(after):
            # The backslash before the script is missing.
            joined = commands[at].with_words((*commands[at].words, *after.words))
            launch, at = recognise(joined), at + 1
        if launch is not None and not _only_asks(launch) and not _is_name(launch, commands[at]):
            launches.append(launch)
        at += 1
    return launches


def _only_asks(launch: Launch) -> bool:
    """Whether a launcher is asked about itself: `torchrun --help`, `horovodrun --check-build`."""
    return launch.entry is None and not launch.args and bool(launch.options.keys() & _QUESTIONS)


def _is_name(launch: Launch, command: Command) -> bool:
    """Whether a launcher is only named, as in a list of packages."""
    return launch.entry is None and not launch.args and len(command.words) == 1 and not command.env


def _is_entry(command: Command) -> bool:
    return bool(command.words) and command.words[0].text.endswith(".py")


def _last_resort(commands: Sequence[Command]) -> list[Launch]:
    """Where nothing is recognised, a lone command is taken as a program of its own."""
    if len(commands) != 1 or not commands[0].words:
        return []
    words = commands[0].words
    name = words[0].text
    is_program = _COMMAND.fullmatch(name) and not is_placeholder(name) and not _PROSE.fullmatch(name)
    # What the launchers have read and set aside is not a program of its own.
    is_read = name in TOOLS or is_launcher(name) or is_python(words[0]) or commands[0].srun is not None
    if not is_program or is_read or len(words) < 2:
        return []
    entry = Entry("script" if name.endswith((".py", ".sh")) else "command", name)
    return [make(commands[0], "other", entry=entry, args=tuple(word.text for word in words[1:]))]


def _called(launch: Launch, entry: Entry) -> str:
    """Return what is run in words that tell its purpose: of `axolotl preprocess`, the second does."""
    return f"{entry.name} {launch.args[0]}" if entry.kind == "command" and launch.args else entry.name


def _is_aside(launch: Launch, launches: Sequence[Launch]) -> bool:
    """Whether a launch serves or prepares; a script whose name tells nothing prepares what a launcher then trains."""
    if launch.entry is None:
        return False
    name = _called(launch, launch.entry)
    if _ASIDE.search(name):
        return True
    leaf = name.rpartition("/")[2]
    if _TRAINS.search(leaf):
        return False
    is_silent = launch.launcher == "other" and leaf.endswith(".sh") and not _TELLS.search(leaf)
    return bool(_ASIDE_BY_DATA.search(name)) or (is_silent and any(_trains(one) for one in launches))


def _trains(launch: Launch) -> bool:
    is_launcher = launch.launcher not in ("python", "other")
    return is_launcher and launch.entry is not None and _TRAINS.search(launch.entry.name) is not None


def choose_launch(launches: Sequence[Launch]) -> int | None:
    """Return the first launch that is neither a server nor preparation; the first of all where there is no other."""
    if not launches:
        return None
    return next((place for place, launch in enumerate(launches) if not _is_aside(launch, launches)), 0)
