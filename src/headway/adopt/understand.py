"""Text in, meaning out."""

from __future__ import annotations

import re
from collections.abc import Sequence

from headway.adopt.command import Command
from headway.adopt.launchers import make, recognise
from headway.adopt.options import is_placeholder
from headway.adopt.record import Entry, Launch, Meaning
from headway.adopt.sbatch import read_header, variables_of
from headway.adopt.tidy import tidy
from headway.adopt.walk import walk
from headway.errors import UsageError

MAX_TEXT_BYTES = 64 * 1024
_ASIDE = re.compile(
    r"(?:^|[/_.\s-])(?:server?|serving|gradio|web_?ui|controller|api|deploy|rollout|download|prepare|preparation|preprocess|"
    r"pre_?process|convert|conversion|install|setup|build|extract|tokeni[sz]e|monitor|make_?data\w*|vllm-serve|generate_data)"
    r"(?:[/_.\s-]|$)",
    re.IGNORECASE,
)
_TOOLS = frozenset(
    {
        "apt",
        "apt-get",
        "awk",
        "brew",
        "cat",
        "chmod",
        "chown",
        "conda",
        "cp",
        "curl",
        "df",
        "docker",
        "du",
        "find",
        "git",
        "grep",
        "head",
        "htop",
        "kill",
        "ln",
        "ls",
        "make",
        "mamba",
        "mkdir",
        "mv",
        "nvidia-smi",
        "nvitop",
        "pip",
        "pip3",
        "pkill",
        "ps",
        "rm",
        "rsync",
        "scp",
        "sed",
        "sleep",
        "squeue",
        "scancel",
        "ssh",
        "tail",
        "tar",
        "tee",
        "tensorboard",
        "top",
        "touch",
        "tmux",
        "unzip",
        "uv",
        "vi",
        "vim",
        "wandb",
        "watch",
        "wc",
        "wget",
        "which",
        "whoami",
        "xargs",
        "yum",
        "zip",
        "huggingface-cli",
        "hf",
        "modelscope",
    }
)
"""Commands that never train."""
_ECHO = re.compile(r"^[ \t]*(?:echo|printf)\b([^\n]{0,400})", re.MULTILINE)
_COMMAND = re.compile(r"[A-Za-z_./~$][\w./~${}+-]*")


def understand(text: str, *, has_lone_command: bool = True) -> Meaning:
    """Return everything a launch line or a shell script launches. Nothing is run and no file is read.

    `has_lone_command`: a single command that is no launcher is taken as a program of its own.
    """
    if len(text.encode("utf-8", "surrogatepass")) > MAX_TEXT_BYTES:
        raise UsageError("adopt/too-large", size=len(text) // 1024, limit=MAX_TEXT_BYTES // 1024)
    header = read_header(text)
    clean, slips = tidy(text)
    walked = walk(clean, given=variables_of(header), header=header)
    launches = _recognise_all(walked.commands)
    if not launches and has_lone_command:
        launches = _last_resort(walked.commands)
    cured = sorted({*slips, *((slip.code, slip.line) for slip in walked.slips)}, key=lambda slip: slip[1])
    return Meaning(
        launches=tuple(launches),
        primary=choose_launch(launches),
        settings=tuple(walked.settings),
        slips=tuple(cured),
        announced=tuple(_ECHO.findall(clean)),
    )


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
        if launch is not None:
            launches.append(launch)
        at += 1
    return launches


def _is_entry(command: Command) -> bool:
    return bool(command.words) and command.words[0].text.endswith(".py")


def _last_resort(commands: Sequence[Command]) -> list[Launch]:
    """Where nothing is recognised, a lone command is taken as a program of its own."""
    if len(commands) != 1 or not commands[0].words:
        return []
    words = commands[0].words
    name = words[0].text
    if not _COMMAND.fullmatch(name) or is_placeholder(name) or len(words) < 2 or name in _TOOLS:
        return []
    entry = Entry("script" if name.endswith((".py", ".sh")) else "command", name)
    return [make(commands[0], "other", entry=entry, args=tuple(word.text for word in words[1:]))]


def choose_launch(launches: Sequence[Launch]) -> int | None:
    """Return the first launch that is neither a server nor preparation; the first of all where there is no other."""
    if not launches:
        return None
    for place, launch in enumerate(launches):
        if launch.entry is None or not _ASIDE.search(launch.entry.name):
            return place
    return 0
