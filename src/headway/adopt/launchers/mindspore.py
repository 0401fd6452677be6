"""msrun, and mindformers' `msrun_launcher.sh`, which takes a quoted command and then values by position."""

from __future__ import annotations

from headway.adopt.command import Command
from headway.adopt.launchers.parts import entry_of, inner_entry, is_python, make, with_options
from headway.adopt.options import flags, known, number, read_options
from headway.adopt.record import Launch
from headway.adopt.shell.expand import Said, Variables, expand_words
from headway.adopt.shell.lexer import read_words
from headway.adopt.shell.tokens import Word

_TABLE = flags(
    "worker_num local_worker_num master_addr master_port node_rank node_id log_dir join cluster_time_out bind_core"
    " sim_level sim_rank_id rank_table_file worker_log_name tail_worker_log tracebacks_as_file",
    "module no_python help",
    m="module",
)


def read_msrun(command: Command) -> Launch:
    """Read the words behind msrun."""
    found = read_options(command.words, _TABLE)
    if found.rest and is_python(found.rest[0]):
        entry, args = inner_entry(found.rest)
    else:
        entry, args = entry_of(found.rest, is_module=found.has("module"))
    total, local = found.number("worker_num"), found.number("local_worker_num")
    launch = make(
        command,
        "msrun",
        nproc_per_node=local,
        nnodes=total // local if total and local and total % local == 0 else None,
        node_rank=found.number("node_rank", "node_id"),
        master_addr=known(found.get("master_addr")),
        master_port=found.number("master_port"),
        entry=entry,
        args=args,
        world_size=total,
    )
    return with_options(launch, found)


def read_launcher_script(command: Command) -> Launch | None:
    """Read `msrun_launcher.sh "COMMAND" …`: 1 word, 2 (count), 6 (one node) or 9 (several)."""
    words = command.words[1:]
    if not words:
        return None
    entry, args = inner_entry(_inner_words(words[0]))
    if entry is not None and entry.kind == "command" and not args:
        return None
    facts: dict[str, int | str | None] = {}
    if len(words) >= 9:
        total, local = number(words[1]), number(words[2])
        facts = {"nproc_per_node": local, "master_addr": known(words[3]), "master_port": number(words[4])}
        facts["node_rank"] = number(words[5])
        facts["nnodes"] = total // local if total and local and total % local == 0 else None
    elif len(words) >= 2:
        facts = {"nproc_per_node": number(words[1]), "nnodes": 1}
        if len(words) >= 3:
            facts["master_port"] = number(words[2])
    return make(command, "msrun", entry=entry, args=args, **facts)


def _inner_words(word: Said) -> list[Said]:
    """Return the words inside the quoted command."""
    tokens = read_words(word.text).tokens
    return expand_words([token for token in tokens if isinstance(token, Word)], Variables())
