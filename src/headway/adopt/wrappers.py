"""Commands that only start another one: nohup, uv run, srun, docker run, bash -c. They are taken off one by one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from headway.adopt.command import Command
from headway.adopt.options import Flags, Options, flags, is_dots, read_options
from headway.adopt.sbatch import LONG_NAMES, read_header
from headway.adopt.shell.expand import Said

_MAX_LAYERS = 12
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")

_CONTAINER = (
    "e env v volume name w workdir p publish gpus shm_size ipc network net u user mount ulimit entrypoint runtime h"
    " hostname env_file device cpus m memory log_driver log_opt security_opt cap_add cap_drop l label add_host platform"
    " pull restart cpuset_cpus cpuset_mems c cpu_shares pid uts tmpfs group_add volumes_from cidfile dns"
    " link expose stop_timeout"
)
_SINGULARITY = "B bind env H home pwd W workdir overlay app hostname network security env_file mount"
_SRUN = (
    "A account N nodes n ntasks ntasks_per_node c cpus_per_task p partition J job_name t time gres G gpus gpus_per_node"
    " gpus_per_task w nodelist x exclude o output e error m distribution mem mem_per_cpu mem_per_gpu mpi cpu_bind"
    " gpu_bind export container_image container_mounts container_workdir container_name jobid D chdir q qos"
    " C constraint"
    " r relative i input d dependency reservation S core_spec threads_per_core ntasks_per_socket network mem_bind"
    " cpus_per_gpu ntasks_per_gpu open_mode wait W signal comment array a tmp begin deadline licenses L switches"
    " nice propagate hint het_group kill_on_bad_exit K"
)
_SRUN_BARE = (
    "l label u unbuffered v verbose Q quiet exclusive overlap exact O overcommit s oversubscribe E preserve_env"
    " immediate I pty no_kill k no_container_mount_home H hold parsable requeue no_requeue container_writable"
)


@dataclass(frozen=True, slots=True)
class Wrapper:
    """How a wrapper is read: its flags, then so many words of its own, then the command."""

    table: Flags
    num_words: int = 0
    env_flags: tuple[str, ...] = ()
    is_text: bool = False
    """What follows is text for a shell rather than words."""


_PLAIN = Wrapper(flags("", can_shorten=False))
_WRAPPERS: Mapping[str, Wrapper] = {
    "nohup": _PLAIN,
    "time": Wrapper(flags("o f", "p v a", can_shorten=False)),
    "setsid": Wrapper(flags("", "f w c fork wait ctty", can_shorten=False)),
    "sudo": Wrapper(flags("u g h p user group", "E H n S i preserve_env", can_shorten=False)),
    "env": Wrapper(flags("u unset C chdir", "i ignore_environment", can_shorten=False)),
    "nice": Wrapper(flags("n adjustment", can_shorten=False)),
    "ionice": Wrapper(flags("c n class classdata", "t", can_shorten=False)),
    "timeout": Wrapper(flags("s signal k kill_after", "foreground preserve_status v", can_shorten=False), 1),
    "stdbuf": Wrapper(flags("i o e input output error", can_shorten=False)),
    "unbuffer": Wrapper(flags("", "p", can_shorten=False)),
    "numactl": Wrapper(
        flags(
            "C physcpubind N cpunodebind m membind i interleave p preferred balancing",
            "l localalloc a all",
            can_shorten=False,
        )
    ),
    "taskset": Wrapper(flags("", "a c p cpu_list all_tasks", can_shorten=False), 1),
    "xvfb-run": Wrapper(flags("s server_args n server_num e error_file", "a auto_servernum", can_shorten=False)),
    "proxychains": Wrapper(flags("f", "q", can_shorten=False)),
    "proxychains4": Wrapper(flags("f", "q", can_shorten=False)),
    "ts": Wrapper(flags("G L D N S", "n f g d B E", can_shorten=False)),
    "tsp": Wrapper(flags("G L D N S", "n f g d B E", can_shorten=False)),
    "catchsegv": _PLAIN,
    "cuda-memcheck": Wrapper(flags("leak_check tool log_file", can_shorten=False)),
    "compute-sanitizer": Wrapper(flags("tool log_file target_processes", can_shorten=False)),
    "caffeinate": Wrapper(flags("t w", "d i m s u", can_shorten=False)),
    "strace": Wrapper(flags("e o p s", "f ff c t tt T v", can_shorten=False)),
    "nvprof": Wrapper(flags("o export_profile log_file profile_from_start", "f", can_shorten=False)),
    "ncu": Wrapper(flags("o k c s set section metrics export launch_count launch_skip", "f", can_shorten=False)),
    "nsys profile": Wrapper(
        flags(
            "o output t trace s sample w show_output c capture_range d duration y delay stats e f force_overwrite"
            " cuda_memory_usage gpu_metrics_device kill x cudabacktrace python_sampling",
            "nvtx",
            can_shorten=False,
        )
    ),
    "py-spy record": Wrapper(
        flags("o output r rate d duration f format", "s subprocesses n native", can_shorten=False)
    ),
    "uv run": Wrapper(
        flags(
            "with extra group p python env_file package project directory with_requirements with_editable index_url",
            "active no_sync frozen locked isolated no_project all_extras no_dev q quiet v verbose",
            can_shorten=False,
        )
    ),
    "uvx": Wrapper(flags("from with p python index_url", "isolated q quiet", can_shorten=False)),
    "poetry run": _PLAIN,
    "pipenv run": _PLAIN,
    "pdm run": _PLAIN,
    "rye run": _PLAIN,
    "hatch run": _PLAIN,
    "pixi run": Wrapper(flags("e environment manifest_path", "frozen locked", can_shorten=False)),
    "conda run": Wrapper(
        flags("n name p prefix cwd", "no_capture_output live_stream v verbose dev", can_shorten=False)
    ),
    "docker run": Wrapper(
        flags(_CONTAINER, "rm d i t it ti itd dit init privileged detach interactive tty P q", can_shorten=False),
        1,
        ("e", "env"),
    ),
    "docker exec": Wrapper(
        flags("e env w workdir u user env_file", "d i t it ti privileged", can_shorten=False), 1, ("e", "env")
    ),
    "singularity exec": Wrapper(
        flags(
            _SINGULARITY,
            "nv rocm c contain C containall cleanenv e writable w writable_tmpfs no_home fakeroot f u",
            can_shorten=False,
        ),
        1,
        ("env",),
    ),
    "kubectl exec": Wrapper(flags("n namespace c container", "i t it", can_shorten=False), 1),
    "srun": Wrapper(flags(_SRUN, _SRUN_BARE, can_shorten=True)),
    "salloc": Wrapper(flags(_SRUN, _SRUN_BARE, can_shorten=True)),
    "ssh": Wrapper(flags("p i o l F L R D J W b c", "n f t T x X A N q v C 4 6", can_shorten=False), 1, is_text=True),
    "pdsh": Wrapper(flags("w x l t u f g R", "b S N", can_shorten=False), is_text=True),
    "screen": Wrapper(flags("S c t h s T L Logfile dmS dmLS mdS", "d m dm U A D R", can_shorten=False)),
    "tmux send-keys": Wrapper(flags("t N", "l R X H", can_shorten=False), is_text=True),
    "tmux new": Wrapper(flags("s n c x y t e", "d A D P", can_shorten=False), is_text=True),
}
_SAME = {
    "podman run": "docker run",
    "nvidia-docker run": "docker run",
    "nvidia-docker exec": "docker exec",
    "podman exec": "docker exec",
    "apptainer exec": "singularity exec",
    "singularity run": "singularity exec",
    "apptainer run": "singularity exec",
    "mamba run": "conda run",
    "micromamba run": "conda run",
    "tmux new-session": "tmux new",
    "tmux send": "tmux send-keys",
    "/usr/bin/time": "time",
}
_CONTAINERS = ("docker", "podman", "nvidia-docker")
_SHELLS = ("bash", "sh", "zsh", "dash", "ksh")


@dataclass(frozen=True, slots=True)
class Unwrapped:
    """The innermost command, or the shell text that stands for it."""

    command: Command
    text: str | None = None


def unwrap(command: Command) -> Unwrapped:
    """Take wrappers off until something else begins."""
    for _ in range(_MAX_LAYERS):
        if not command.words:
            break
        text = _shell_text(command)
        if text is not None:
            label = "bash -c" if not command.bodies else command.words[0].text.rpartition("/")[2]
            label = label.replace("bash", command.words[0].text.rpartition("/")[2]) if label == "bash -c" else label
            return Unwrapped(replace(command, wrappers=(*command.wrappers, label)), text)
        if command.words[0].text.rpartition("/")[2] == "sbatch":
            return _unwrap_sbatch(command)
        inner = _unwrap_one(command)
        if inner is None:
            break
        if isinstance(inner, Unwrapped):
            return inner
        command = inner
    return Unwrapped(command)


def read_kept(found: Unwrapped, files: Mapping[str, str]) -> Unwrapped:
    """Return the text of a script that the same text has written before, in place of its name."""
    words = found.command.words
    if found.text is not None or not words:
        return found
    name = (
        words[1].text if words[0].text.rpartition("/")[2] in (*_SHELLS, "source") and len(words) > 1 else words[0].text
    )
    text = files.get(name.removeprefix("./"))
    if text is None:
        return found
    header = dict(found.command.sbatch) | read_header(text)
    return Unwrapped(replace(found.command, words=(), sbatch=header), text)


def _name(command: Command) -> tuple[str, int]:
    """Return the wrapper's name and how many words it has, or an empty name."""
    first = command.words[0].text
    first = first if first in _SAME else first.rpartition("/")[2]
    if len(command.words) > 1 and f"{first} {command.words[1].text}" in (_WRAPPERS.keys() | _SAME.keys()):
        return f"{first} {command.words[1].text}", 2
    return (first, 1) if first in _WRAPPERS or first in _SAME else ("", 0)


def _in_order(command: Command) -> Command:
    """Put `docker --gpus all run` as docker itself wants it: the verb first."""
    words = command.words
    if words[0].text.rpartition("/")[2] not in _CONTAINERS or len(words) < 3 or not words[1].text.startswith("-"):
        return command
    place = next((at for at, word in enumerate(words[:10]) if word.text in ("run", "exec")), None)
    return (
        command
        if place is None
        else replace(command, words=(words[0], words[place], *words[1:place], *words[place + 1 :]))
    )


def _unwrap_one(command: Command) -> Command | Unwrapped | None:
    command = _in_order(command)
    name, num_words = _name(command)
    if not name:
        return None
    wrapper = _WRAPPERS[_SAME.get(name, name)]
    found = read_options(command.words[num_words:], wrapper.table, starts_program=name in ("srun", "salloc"))
    rest = list(found.rest)
    env = dict(command.env)
    for flag in wrapper.env_flags:
        for given in found.given.get(flag, []):
            for one in _split_env(given) if flag == "env" and name.startswith(("sing", "appt")) else [given]:
                variable, sign, _ = one.text.partition("=")
                if sign:
                    env[variable] = one.tail(len(variable) + 1)
    del rest[: wrapper.num_words]
    while rest and (rest[0].text == "--" or is_dots(rest[0].text)):
        rest.pop(0)
    # Only env, sudo and time take assignments, but `nohup A=1 python …` is written anyway and means the same.
    while rest and not wrapper.is_text and _ASSIGNMENT.match(rest[0].text):
        variable = rest[0].text.partition("=")[0]
        env[variable] = rest.pop(0).tail(len(variable) + 1)
    inner = replace(command.with_words(tuple(rest)), env=env, wrappers=(*command.wrappers, name))
    if name in ("srun", "salloc"):
        inner = replace(inner, srun=_merge(command.srun, found))
    while name == "tmux send-keys" and rest and rest[-1].text in ("C-m", "Enter", "ENTER"):
        rest.pop()
    if wrapper.is_text and rest:
        return Unwrapped(inner, " ".join(word.text for word in rest))
    return inner


def _split_env(given: Said) -> list[Said]:
    """Return the parts of `--env A=1,B=2`."""
    return [Said(part, given.names if "$" in part else frozenset()) for part in re.split(r",(?=\w+=)", given.text)]


def _merge(outer: Options | None, inner: Options) -> Options:
    """An srun inside an salloc inherits what it does not say itself."""
    if outer is None:
        return inner
    return Options(given={**outer.given, **inner.given}, rest=inner.rest)


def _shell_text(command: Command) -> str | None:
    """Return the text of `bash -c TEXT`, or of a heredoc that a shell reads."""
    shell = command.words[0].text.rpartition("/")[2]
    if shell not in _SHELLS:
        return None
    words = command.words[1:]
    for place, word in enumerate(words):
        if re.fullmatch(r"-[a-z]*c", word.text):
            return words[place + 1].text if place + 1 < len(words) else None
        if not word.text.startswith("-"):
            return None
    return command.bodies[0] if command.bodies else None


def header_of(found: Options | None) -> dict[str, str | bool]:
    """Return the flags of srun or sbatch as a header says them."""
    given = found.given if found is not None else {}
    return {LONG_NAMES.get(name, name.replace("_", "-")): values[-1].text or True for name, values in given.items()}


def _unwrap_sbatch(command: Command) -> Unwrapped:
    found = read_options(command.words[1:], flags(f"{_SRUN} wrap", _SRUN_BARE))
    header = {**command.sbatch, **header_of(found)}
    header.pop("wrap", None)
    inner = replace(command.with_words(found.rest), wrappers=(*command.wrappers, "sbatch"), sbatch=header)
    wrap = found.text("wrap")
    if wrap is not None:
        return Unwrapped(inner, wrap)
    if not found.rest and command.bodies:
        return Unwrapped(inner, command.bodies[0])
    # A batch script is run by its shell; which one does not matter here.
    return Unwrapped(replace(inner, words=(Said("bash"), *found.rest)) if found.rest else inner)
