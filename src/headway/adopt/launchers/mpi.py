"""horovodrun and mpirun: `-np` is the total, slots are counted a host."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from headway.adopt.command import Command
from headway.adopt.launchers.parts import inner_entry, make, with_options
from headway.adopt.options import Options, flags, number, read_options
from headway.adopt.record import Launch
from headway.adopt.shell.expand import Said, Variables, expand_words
from headway.adopt.shell.lexer import read_words
from headway.adopt.shell.parser import Simple, parse
from headway.adopt.wrappers import unwrap

_HOROVOD = flags(
    "np num_proc p ssh_port H hosts hostfile ssh_identity_file network_interface network_interfaces nics min_np max_np"
    " slots_per_host host_discovery_script reset_limit elastic_timeout fusion_threshold_mb"
    " cycle_time_ms cache_capacity autotune_log_file autotune_warmup_samples autotune_steps_per_sample"
    " autotune_bayes_opt_max_samples autotune_gaussian_process_noise timeline_filename mpi_args start_timeout"
    " output_filename config_file log_level stall_check_warning_time_seconds stall_check_shutdown_time_seconds"
    " thread_affinity gloo_timeout_seconds num_nccl_streams tcp_flag binding_args min_num_proc max_num_proc",
    "autotune no_autotune gloo mpi jsrun verbose disable_cache prefix_output_with_timestamp hierarchical_allreduce"
    " hierarchical_allgather no_hierarchical_allreduce no_hierarchical_allgather no_stall_check stall_check tcp"
    " timeline_mark_cycles no_timeline_mark_cycles check_build cb version v torus_allreduce"
    " no_torus_allreduce mpi_threads_disable",
    pairs="blacklist_cooldown_range",
    can_shorten=False,
    num_proc="np",
    H="hosts",
    hostfile="hostfile",
)
_MPI = flags(
    "np H host hostfile machinefile npernode ppn perhost N map_by bind_to rank_by x output_filename wd wdir"
    " timeout prefix app report_uri mca_base iface hosts launcher bootstrap rmk display_map_to outfile_pattern"
    " errfile_pattern"
    " envlist genvlist configfile f rf rankfile cpus_per_proc cpus_per_rank max_restarts stdin ofi plm_rsh_agent",
    "allow_run_as_root oversubscribe nooversubscribe tag_output report_bindings display_map display_allocation"
    " v verbose q quiet"
    " timestamp_output bynode byslot bycore use_hwthread_cpus genvall envall nolocal pernode prepend_rank l"
    " merge_stderr_to_stdout",
    pairs="mca gmca genv env omca prtemca pmixmca",
    can_shorten=False,
    n="np",
    c="np",
    np="np",
    host="hosts",
    H="hosts",
    machinefile="hostfile",
    f="hostfile",
    ppn="npernode",
    perhost="npernode",
    N="npernode",
)


def read_horovod(command: Command) -> Launch:
    """Read the words behind horovodrun."""
    return _read(command, "horovod", read_options(_join_hosts(command.words), _HOROVOD))


def read_mpirun(command: Command) -> Launch:
    """Read the words behind mpirun and mpiexec."""
    command, found = _split(command)
    return _read(command, "mpirun", found)


def words_behind(command: Command) -> tuple[tuple[Said, ...], tuple[str, ...]]:
    """Return the words of the program itself, and the wrappers before it."""
    return _strip(Command(words=command.words))


def behind_mpirun(command: Command) -> Command:
    """Return the command that mpirun starts on every slot."""
    command, found = _split(command)
    return command.with_words(found.rest)


def _split(command: Command) -> tuple[Command, Options]:
    """Return mpirun's own flags, and the command with the environment they pass on."""
    found = read_options(_join_hosts(_split_env(command.words)), _MPI, starts_program=True)
    env, names = dict(command.env), set(command.names)
    for flag in ("x", "genv", "env"):
        for given in found.given.get(flag, []):
            name, sign, _ = given.text.partition("=")
            if sign:
                env[name] = given.tail(len(name) + 1)
            elif name not in env and not name.startswith("$"):
                names.add(name)
    return replace(command, env=env, names=frozenset(names)), found


def _split_env(words: Sequence[Said]) -> tuple[Said, ...]:
    """Take `-env NAME=value` as the two words that `-env NAME value` has."""
    split: list[Said] = []
    for word in words:
        name, sign, _ = word.text.partition("=")
        if sign and split and split[-1].text in ("-env", "-genv"):
            split += [Said(name), word.tail(len(name) + 1)]
        else:
            split.append(word)
    return tuple(split)


def _join_hosts(words: Sequence[Said]) -> tuple[Said, ...]:
    """Repair `-H a:8, b:8`: the blank behind the comma is a slip."""
    joined: list[Said] = []
    is_list = False
    for word in words:
        if is_list and joined[-1].text.endswith(","):
            joined[-1] = Said(joined[-1].text + word.text, joined[-1].names | word.names)
            continue
        is_list = bool(joined) and joined[-1].text in ("-H", "-host", "--host", "--hosts", "-hosts")
        joined.append(word)
    return tuple(joined)


def _read(command: Command, launcher: str, found: Options) -> Launch:
    total = found.number("np")
    ranks, hosts = _layout(total, found)
    inner, wrappers = _strip(Command(words=found.rest))
    entry, args = inner_entry(inner)
    launch = make(
        command,
        launcher,
        nproc_per_node=ranks,
        nnodes=hosts,
        entry=entry,
        args=args,
        world_size=total,
        hostfile=found.text("hostfile"),
        wrappers=(*command.wrappers, *wrappers),
    )
    return with_options(launch, found)


def _strip(command: Command) -> tuple[tuple[Said, ...], tuple[str, ...]]:
    """Take off what is between the launcher and the program; `bash -c` is read one level deep."""
    found = unwrap(command)
    if found.text is None:
        return found.command.words, found.command.wrappers
    for node in reversed(parse(read_words(found.text).tokens)):
        if isinstance(node, Simple):
            return tuple(expand_words(node.words, Variables())), found.command.wrappers
    return (), found.command.wrappers


def _layout(total: int | None, found: Options) -> tuple[int | None, int | None]:
    """Return ranks a node and nodes, as far as hosts and slots tell them."""
    slots = _slots(found.get("hosts"))
    per_node = found.number("npernode", "slots_per_host") or _by_map(found.get("map_by"))
    if found.has("pernode"):
        per_node = 1
    if per_node:
        hosts = len(slots) if slots else total // per_node if total and total % per_node == 0 else None
        return per_node, hosts
    if slots is None:
        is_open = found.has("hosts", "hostfile", "host_discovery_script")
        return (None, None) if is_open else (total, None)
    used = slots[0]
    if used is None or any(one != used for one in slots):
        return (total, 1) if len(slots) == 1 else (None, len(slots))
    hosts = len(slots) if total is None else min(len(slots), -(-total // used))
    return (min(used, total) if total else used), hosts


def _slots(hosts: Said | None) -> list[int | None] | None:
    """Return the slots of each host of `a:4,b:4`."""
    if hosts is None or not hosts.is_known or not hosts.text:
        return None
    slots: list[int | None] = []
    for host in hosts.text.split(","):
        count = host.rpartition(":")[2] if ":" in host else ""
        slots.append(int(count) if re.fullmatch(r"\d{1,5}", count) and int(count) else None)
    return slots


def _by_map(value: Said | None) -> int | None:
    match = re.match(r"ppr:(\d{1,5}):node", value.text) if value is not None else None
    return number(Said(match[1])) if match else None
