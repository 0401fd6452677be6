"""The lines of `same_as_bash.py`: made by chance from a seed, of everything that people put into launch lines."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

LAUNCHERS = (
    "python x.py",
    "python -u x.py",
    "python3 -W ignore -m pkg.train",
    "python -c 'import sys'",
    "python3.11 x.py",
    "ipython x.py --",
    "pypy3 x.py",
    "./tool.py",
    "torchrun --nproc_per_node=2 x.py",
    "torchrun --standalone --nproc-per-node 2 -m pkg.train",
    "torchrun --nnodes=2 --node_rank 1 --master_addr 10.0.0.1 x.py",
    "torchrun --log-dir L --redirects 3 --tee 3 x.py",
    "torchrun --nproc_per_node=${NGPU:-1} x.py",
    "python -m torch.distributed.run --nproc_per_node=2 x.py",
    "python -m torch.distributed.launch --use_env x.py",
    "accelerate launch --num_processes 2 --mixed_precision bf16 x.py",
    "accelerate-launch --config_file c.yaml x.py",
    "python -m accelerate.commands.launch x.py",
    "deepspeed --num_gpus=2 --master_port 29501 x.py --deepspeed",
    "deepspeed --include localhost:0,1 x.py",
    "msrun --worker_num=2 --local_worker_num=2 x.py",
    "mpirun -np 2 -x LR --oversubscribe python x.py",
    "mpirun -H a:1,b:1 python x.py",
    "srun -n 2 --gres=gpu:2 python x.py",
    "srun --ntasks-per-node=2 bash x.sh",
    "horovodrun -np 2 python x.py",
    "composer -n 2 x.py",
    "colossalai run --nproc_per_node 2 x.py",
    "llamafactory-cli train c.yaml",
    "swift sft --model m",
    "paddle train x.py",
    "ray job submit -- python x.py",
    "bash x.sh",
    "sh x.sh",
    "bash tools/dist_train.sh cfg.py 2",
    "uv run x.py",
    "conda run -n env python x.py",
)
WRAPPERS = (
    *("env -C sub", "env -u X", "env -u X -u LR", "env Q=1 W='a b'", "env -i P=1", "env --"),
    *(
        "stdbuf -oL",
        "stdbuf -i0 -o0",
        "nice -n 5",
        "nice",
        "nohup",
        "timeout 60",
        "timeout -k 5 60",
        "timeout -s INT 60",
    ),
    *("taskset -c 0", "numactl --cpunodebind=0 --membind=0", "setsid -w", "command", "exec", "time", "ionice -c3"),
)
LITERALS = (
    *(
        "--lr",
        "0.1",
        "-x",
        "--",
        "-",
        "a=b",
        "k=~/v",
        "--opt=~/x",
        "1e-4",
        "a,b",
        "@file",
        "+trainer.max=3",
        "%run",
        "x:y",
        "^a",
    ),
    *("数据", "--提示=你好", "“助手”", "It’s", "！", "模型/路径", "日本語", "é"),
)
QUOTED = (
    *(
        "'<s>'",
        "'</s>'",
        "'>=2.0'",
        "'<image>'",
        "'&'",
        "'a;b'",
        "'|'",
        "'$LR'",
        "'a  b'",
        "'~'",
        "'*'",
        "'{1..3}'",
        "'#x'",
        "''",
    ),
    *(
        '"a b"',
        '"$LR"',
        '"${LR:-1}"',
        '"$SPACED"',
        '"it\'s"',
        '"a\\"b"',
        '"\\$LR"',
        '"~/d"',
        '"*.txt"',
        '"`echo q`"',
        '""',
    ),
    *(
        "'It’s a test'",
        "'“助手”'",
        "'$ ls\n> x'",
        "'```sh\npython\n```'",
        "'%run a.py\n!ls'",
        "'a\r\nb'",
        "'一\n二'",
        "'\t'",
    ),
    *(
        "$'a\\tb\\n'",
        "$'\\u4e2d'",
        "a\\ b",
        "\\*",
        "\\$LR",
        "\\#",
        "\\~",
        "\\'",
        "\"a\"'b'c",
        "x'y z'w",
        '"$(echo s t)"',
        "'\\'",
        '"\\\\"',
    ),
    "'{\"a\": [1, 2]}'",
    '"{\\"a\\": $LR}"',
)
EXPANDED = (
    *(
        "$LR",
        "${LR}",
        "${LR:-0.1}",
        "${NOPE:-0.1}",
        "${NOPE-d e}",
        "${NOPE}",
        "$NOPE",
        "${DEBUG:+--debug}",
        "${NOPE:+--no}",
    ),
    *(
        "${EMPTY:-e}",
        "${EMPTY-e}",
        "${EMPTY}",
        "$SPACED",
        "${SPACED}",
        "$STAR",
        '"$STAR"',
        "${LR:-${NOPE:-2}}",
        "${NOPE:-$LR}",
    ),
    *(
        "${#LR}",
        "${SPACED% *}",
        "${SPACED/a/z}",
        "${LR:0:1}",
        "${SPACED^^}",
        "${!REF}",
        "${NOPE:=w}$NOPE",
        "$1",
        "$#",
        "$@",
        "$?",
    ),
    *(
        "$((2*3))",
        "$((1+GPUS))",
        "$(( GPUS > 2 ? 7 : 8 ))",
        "$[1+1]",
        "$(echo a b)",
        '"$(echo a b)"',
        "`echo c`",
        "$(basename $PWD)",
    ),
    *(
        "~",
        "~/d",
        "~root/x",
        "a~b",
        "*.txt",
        "g/*.bin",
        "g/?.bin",
        "[ab].txt",
        "none*.zip",
        "{1..3}",
        "a{b,c}d",
        "{a,b}{1,2}",
    ),
    *(
        "x{1..2}.txt",
        "{x}",
        "{}",
        "g/{1,9}.bin",
        "**",
        ".*rc",
        "!x",
        "a!b",
        "数据/*.txt",
        "$HOME/x",
        "${HOME}/y",
        "$PWD",
        "$0",
        "$RANDOMX",
    ),
    *(
        "--lr=${LR:-0.1}",
        "--path=$HOME/d",
        "--files=*.txt",
        "pre${LR}post",
        "$LR$GPUS",
        "$",
        "a$",
        "$%",
        "cost$5",
        "a$(true)b",
    ),
)
ASSIGNMENTS = (
    *(
        "A=1",
        "B='x y'",
        'C="$HOME/z"',
        "D=${GPUS:-0}",
        "E=${NOPE}",
        "F=$((1+2))",
        "G=~/x:~/y",
        "H=*.txt",
        "I=$SPACED",
        "J=a\\ b",
    ),
    *(
        "CUDA_VISIBLE_DEVICES=${GPUS:-0}",
        "OMP_NUM_THREADS=2",
        "K=$(echo k)",
        "LR=9",
        "L=“x”",
        "M=",
        "X+=more",
        "N={1,2}",
    ),
    *("PYTHONPATH=.:$PYTHONPATH", "TOKENIZERS_PARALLELISM=false", "PET_NPROC_PER_NODE=2", "PET_NNODES=2", 'O="<s>"'),
)
REDIRECTS = (
    *(
        "> out.txt",
        "2> err.txt",
        "> out.txt 2>&1",
        "&> all.txt",
        ">> a.txt",
        "< in.txt",
        "<<< 'word'",
        "2>/dev/null",
        ">| a.txt",
        "3> t.txt",
    ),
    '> "log $LR.txt"',
)


@dataclass(frozen=True, slots=True)
class Line:
    """One line and how it is handed over."""

    mode: str
    """`text`, `words`, `script`, or `clean` for the file of `headway adopt --to`."""
    text: str
    words: tuple[str, ...] = ()
    kind: str = ""


def make_line(random: Random) -> Line:
    """Return one line."""
    mode = random.choices(("text", "words", "script", "clean"), (56, 24, 14, 6))[0]
    if mode == "words":
        return _words(random)
    if mode == "clean":
        return Line("clean", f"{_assignments(random, 0.3, _is_mild)}{_plain(random, mild=True)}", kind="clean")
    make = random.choices((_command, _redirected, _compound), (50, 20, 30))[0]
    text = make(random)
    text = _dress(random, text) if make is not _compound else text
    if mode == "script" and text.endswith("&"):
        text += "\nwait"  # a script that ends before what it started is judged by other tests
    return Line(mode, text, kind=make.__name__.strip("_"))


def make_lines(random: Random, number: int) -> list[Line]:
    """Return so many lines."""
    return [make_line(random) for _ in range(number)]


def _words(random: Random) -> Line:
    """Words as a user's shell makes them: any text may be in one."""
    words = shlex.split(random.choice([one for one in LAUNCHERS if "$" not in one]))
    if random.random() < 0.4:
        wrapper = random.choice([one for one in WRAPPERS if one not in ("exec", "command")])
        words = [*shlex.split(wrapper), *words]
        words = _absolute(words)
    if random.random() < 0.3 and words[0] not in ("time",):
        words = ["A=1", "B=x y", "C=“$LR”"][: random.randint(1, 3)] + words
    pool = (*LITERALS, *QUOTED, *EXPANDED)
    words += [random.choice(pool) for _ in range(random.randint(0, 6))]
    words += [f"--exit={random.choice((1, 3, 77))}"] if random.random() < 0.15 else []
    heads = [f"{one[:2]}{shlex.quote(one[2:])}" for one in words if one.startswith(("A=", "B=", "C="))]
    text = " ".join([*heads, shlex.join(words[len(heads) :])])
    return Line("words", text, tuple(words), "words")


def _absolute(words: list[str]) -> list[str]:
    """Give the program behind `env -i` a path, since it has no PATH to be found on."""
    if words[:2] == ["env", "-i"]:
        return [*words[:3], f"../bin/{words[3]}" if "/" not in words[3] else words[3], *words[4:]]
    return words


def _is_mild(text: str) -> bool:
    return not text.startswith(("PET_", "OMP_", "L=", "TOKENIZERS", "PYTHONPATH", "LR=", "X+", "CUDA"))


def _assignments(random: Random, share: float, keep: Callable[[str], bool] = bool) -> str:
    if random.random() >= share:
        return ""
    chosen = random.sample([one for one in ASSIGNMENTS if keep(one)], random.randint(1, 3))
    return " ".join(chosen) + " "


def _plain(random: Random, *, mild: bool = False) -> str:
    launchers = [one for one in LAUNCHERS if one.startswith(("python x", "python -u x"))] if mild else LAUNCHERS
    parts = [random.choice(launchers)]
    # `adopt` repairs typographic quotes, as it says; everything else in a clean file is bash's.
    literals = [one for one in LITERALS if not mild or not set(one) & set("“”‘’")]
    for _ in range(random.randint(0, 6)):
        parts.append(random.choice(random.choices((literals, QUOTED, EXPANDED), (3, 3, 4))[0]))
    if random.random() < 0.15:
        parts.append(f"--exit={random.choice((1, 2, 3, 77))}")
    return " ".join(parts)


def _command(random: Random) -> str:
    wrapper = ""
    program = _plain(random)
    if random.random() < 0.35:
        wrapper = random.choice(WRAPPERS)
        if wrapper.startswith("env -i"):
            program = f"$PWD/../bin/{program}" if not program.startswith(".") else program
    prefix = _assignments(random, 0.35)
    return f"{wrapper} {prefix}{program}" if wrapper == "time" else f"{prefix}{wrapper} {program}".strip()


def _redirected(random: Random) -> str:
    return f"{_command(random)} {' '.join(random.sample(REDIRECTS, random.randint(1, 2)))}"


def _dress(random: Random, text: str) -> str:
    """Add what editors and copying add: comments, continued lines, line ends, blanks."""
    chance = random.random()
    if chance < 0.08:
        return f"{text} # a comment & more; 'x"
    if chance < 0.2:
        return text.replace(" x.py", " \\\n    x.py", 1)
    if chance < 0.26:
        return f"# before\n\n{text}\n\n"
    if chance < 0.3:
        return text + "\r\n"
    if chance < 0.33:
        return text.replace(" x.py", " \\\r\n x.py", 1)
    if chance < 0.36:
        return f"  \t{text}  \t"
    if chance < 0.4:
        return f"{text} &"
    return text


def _compound(random: Random) -> str:
    one, two = _command(random), _plain(random)
    forms = (
        f"{one}; {two}",
        f"{one} && {two}",
        f"{one} || {two}",
        f"{one} | {two}",
        f"({one})",
        f"{{ {one}; }}",
        f"f() {{ {two} \"$@\"; }}; f 'a b' $LR",
        f"function go {{ local v=$1; python x.py $v; }}\ngo {random.choice(QUOTED)}",
        "for i in 1 2; do python x.py $i ${LR:-1}; done",
        f"for f in *.txt; do {two} $f; done",
        f"if [ -f a.txt ]; then {one}; else {two}; fi",
        f"case $GPUS in 3) {two};; *) python no.py;; esac",
        f'export A=1 B="$LR"\n{one}',
        "V='a b'; python x.py $V \"$V\"",
        f"cd sub && {two}",
        f"set -e; {two}; python after.py",
        "set -u; python x.py $NOPE",
        'ARGS=(--a \'b c\' "$LR"); python x.py "${ARGS[@]}" ${#ARGS[@]}',
        "python x.py <<E\n$LR `echo x` '\nE",
        "python x.py <<'E'\n$LR\nE",
        "cat > made.sh <<E\npython x.py $LR \\$LR\nE\nbash made.sh",
        "python x.py & wait",
        f"! {two}",
        f"[[ $GPUS -gt 2 ]] && {two}",
        'while read -r line; do python x.py "$line"; done < in.txt',
        "python x.py <(echo a) || true",
        f"eval '{'python x.py $LR'}'",
        "bash -c 'python x.py \"$1\" $LR' bash 'a b'",
        "N=$(python x.py a | wc -l); python x.py $N",
        f"trap 'python bye.py' EXIT; {two}",
        f"alias p=python\n{two}",
        f"unset LR; {two}",
        f"(cd sub; {two}) > out.txt",
        f"{two}\n\n{_plain(random)}\n",
        "umask 077; python x.py > made.txt",
        'source x.sh; python x.py "$SOURCED"',
        f"ulimit -c 0 && {two}",
        "A=1 B=2\npython x.py $A$B",
        "python x.py --exit=3\r\n",
        "exit 7",
        "python x.py \\\n  --a $LR \\\n  # stop\n",
        "coproc { cat; }; python x.py; exec {COPROC[1]}>&-",
    )
    return random.choice(forms)
