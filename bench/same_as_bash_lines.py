"""The lines of `same_as_bash.py`: made by chance from a seed, of everything that people put into launch lines."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
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
    "uv run --with torch python -m pkg.train",
    "conda run -n env python x.py",
    "conda run --no-capture-output -n env torchrun --nproc_per_node=2 x.py",
    "micromamba run -n env python x.py",
    "poetry run python x.py",
    "pipenv run torchrun x.py",
    "pixi run train",
    "apptainer exec --nv img.sif python x.py",
    "docker run --rm -e LR img python x.py",
    "nsys profile -o prof python x.py",
    "py-spy record -o p.svg -- python x.py",
    "coverage run -m pkg.train",
    "tune run --nproc_per_node 2 lora --config c.yaml",
    "axolotl train c.yaml",
    "ds --num_gpus 2 x.py",
    "xvfb-run -a python x.py",
    "python -X dev -u x.py",
    "python -W error::UserWarning -OO x.py",
    "python -B -I -m pkg.train",
    "python -",
    "python -c 'import os\nprint(1)'",
    "$PWD/tool.py",
    "'数据/我的 程序.py'",
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
    *("taskset 0x1", "taskset --cpu-list 0", "chrt -b 0", "prlimit --nofile=512", "setarch -R", "flock lock.file"),
    *(
        "timeout --foreground 60",
        "timeout --preserve-status -k 5 1m",
        "nice --adjustment=3",
        "nice -5",
        "ionice -c2 -n7",
    ),
    *("env --chdir=sub", "env -u X -C sub", "env -", "env -S 'A=1 B=\"x y\"'", "nohup nice -n 5 stdbuf -oL", "time -p"),
    *("exec -a other", "exec -c", "command -p", "builtin exec", "sudo -E", "xargs -a in.txt"),
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
    *("--a.b=c", "key:=1", "~nobody", "a\\:b", "=x", "-1", "--no-x", "--x=", "%s", "\\t", "a'b'", "[0]", "?", "x[0]=1"),
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
    *(
        "'数据/我的 文件.txt'",
        '"数据/我的 文件.txt"',
        "'a\\b'",
        "'--x=\"y z\"'",
        "$'\\x01\\xff\\x7f'",
        "$'\\e[31m'",
        "'!!'",
        '"!x"',
    ),
    *(
        "'" + "长" * 3000 + "'",
        "'" + "x" * 20000 + "'",
        '"${SPACED:-"q r"}"',
        "\"$(printf 'a b')\"",
        '"${ARR[@]}"',
        '"$@"',
        '"$*"',
    ),
    *(
        '$"hi"',
        "''\"\"''",
        '"a\\\nb"',
        "'a\\\nb'",
        '"\\`x\\`"',
        "'%d'",
        "'\u200b'",
        "'　'",
        "'\xa0x'",
        "'a\x0bb'",
        "'a\fb'",
    ),
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
    *("{a..e..2}", "{01..03}", "{a,}", "{,b}", "{a,{b,c}}", "a{1..2}b{x,y}", "{1..$GPUS}", "\\{a,b}", "{a\\,b,c}"),
    *(
        "${LR@Q}",
        "${SPACED@U}",
        "${NOPE+set}",
        "${LR:+a b}",
        "${SPACED#* }",
        "${SPACED//b/ q }",
        "${SPACED,,}",
        "${LR:1}",
    ),
    *("${SPACED:2:3}", "${SPACED: -1}", "${NOPE:-*.txt}", "${NOPE:-~}", "${NOPE:-'a b'}", '${NOPE:-"a b"}', "${!GPU*}"),
    *(
        "$((LR2=3))",
        "$((GPUS<<1))",
        "$((16#ff))",
        "$((GPUS?1:2))",
        "$(<in.txt)",
        "$(cat < in.txt | tail -1)",
        "`echo \\`echo n\\``",
    ),
    *("$-", "$*", "${@}", "${#}", "${1:-one}", "${*:-all}", "$UID", "$HOSTNAME", "$OSTYPE", "$IFS", "${IFS}x", "$PATH"),
    *(
        "~+",
        "~-",
        "~/*.x",
        "[!a]*.txt",
        "[[:alpha:]].txt",
        "*/",
        "./*.txt",
        "?.txt",
        "c\\ d.txt",
        "*\\ d.txt",
        "数*",
        ".[a-z]*",
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
    *(
        "PATH=$PWD/../bin:$PATH",
        "IFS=:",
        "LC_ALL=C.UTF-8",
        "LANG=zh_CN.GBK",
        "PYTHONUNBUFFERED=1",
        "NO_COLOR=1",
        "RANK=0",
    ),
    *(
        "FORCE_COLOR=1",
        "P=$'a\\nb'",
        "SHLVL=5",
        "BASH_ENV=x.sh",
        "POSIXLY_CORRECT=1",
        "CUDA_VISIBLE_DEVICES=",
        "WORLD_SIZE=4",
    ),
    *(
        "PYTHONWARNINGS=ignore",
        "MASTER_PORT=29500",
        "R='数据 集'",
        "S=$'\\xff'",
        "T=${LR}${GPUS}",
        "U=`echo u`",
        "V=$(<in.txt)",
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
    *(
        "<&-",
        ">&-",
        "2>&-",
        "< /dev/null",
        "2>&1 > out.txt",
        "3<&0 < in.txt",
        "> '数据/输 出.txt'",
        "> ~/home.txt",
        "&>> a.txt",
    ),
    *("1>&2", "2>&1", "> out-$((1+1)).txt", "{fd}> n.txt", "<> a.txt", "> $NOPE", "> none/out.txt", "< missing.txt"),
)

SURROUNDINGS: tuple[dict[str, str], ...] = (
    {"BASH_FUNC_helper%%": '() {  python helper.py "$@"\n}'},
    {"BASH_FUNC_python%%": '() {  command python wrapped.py "$@"\n}'},
    {"a.b": "dotted", "x-y": "dashed", "1N": "digit"},
    {"TWO": "first\nsecond", "TAIL": "x\n"},
    {"RAW": "\udcff\udcfe"},
    {"IFS": ",", "POSIXLY_CORRECT": "1"},
    {"SHELLOPTS": "braceexpand:hashall:interactive-comments:noglob"},
    {"SHELLOPTS": "braceexpand:errexit:hashall:interactive-comments:nounset"},
    {"BASHOPTS": "checkwinsize:cmdhist:complete_fullquote:extglob:nullglob"},
    {"LC_ALL": "C"},
    {"LANG": "zh_CN.GBK", "LANGUAGE": "zh"},
    {"NO_COLOR": "1", "CLICOLOR_FORCE": "1"},
    {"PYTHONPATH": "/elsewhere", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONIOENCODING": "latin-1"},
    {"RANK": "0", "WORLD_SIZE": "1", "SLURM_PROCID": "0", "SLURM_JOB_ID": "7"},
    {"ENV": "x.sh", "CDPATH": "sub", "GLOBIGNORE": "b.txt", "PS4": "$(echo trouble)"},
    {"EMPTY2": "", "_": "/usr/bin/env", "OLDPWD": "/"},
    {"COLUMNS": "20", "LINES": "5", "TMPDIR": "/nowhere"},
)
"""Environments in which a line may find itself."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line and how it is handed over."""

    mode: str
    """`text`, `words`, `script`, or `clean` for the file of `headway adopt --to`."""
    text: str
    words: tuple[str, ...] = ()
    kind: str = ""
    surroundings: Mapping[str, str] = field(default_factory=dict)
    """Variables beside the usual ones."""


def make_line(random: Random) -> Line:
    """Return one line."""
    line = _make_line(random)
    if random.random() >= 0.2:
        return line
    chosen = random.choice(SURROUNDINGS)
    # A word behind `headway run` names a program, as it does behind `env`; the user's functions are not asked.
    is_hidden = line.mode == "words" and "BASH_FUNC_python%%" in chosen
    return line if is_hidden else replace(line, surroundings=chosen)


def _make_line(random: Random) -> Line:
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
    front = itertools.takewhile(lambda one: one.startswith(("A=", "B=", "C=")), words)
    heads = [f"{one[:2]}{shlex.quote(one[2:])}" for one in front]
    text = " ".join([*heads, shlex.join(words[len(heads) :])])
    return Line("words", text, tuple(words), "words")


def _absolute(words: list[str]) -> list[str]:
    """Give the program behind `env -i` a path, since it has no PATH to be found on."""
    if words[:2] == ["env", "-i"]:
        return [*words[:3], f"../bin/{words[3]}" if "/" not in words[3] else words[3], *words[4:]]
    return words


def _is_mild(text: str) -> bool:
    return not text.startswith(("PET_", "OMP_", "L=", "TOKENIZERS", "PYTHONPATH", "LR=", "X+", "CUDA", "WORLD_SIZE"))


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
        *_habits(random, one, two),
    )
    return random.choice(forms)


def _habits(random: Random, one: str, two: str) -> tuple[str, ...]:
    """Return what people bring along: from scripts with all safety catches on, from zsh and fish, from other tools."""
    quoted = random.choice(QUOTED)
    return (
        f"set -euo pipefail\n{two}\npython after.py",
        "set -o pipefail; python x.py --exit=3 | cat > piped.txt",
        f'export -f f 2>/dev/null; f() {{ python x.py "$@"; }}; export -f f; bash -c \'f "$1" $LR\' _ {quoted}',
        f"helper {quoted} || python x.py no-helper",
        'IFS=,; V=a,b,,c; python x.py $V "$V"',
        "IFS=$'\\n'; python x.py $(printf 'a b\\nc d\\n')",
        f"exec {two}",
        f"exec > out.txt 2>&1\n{two}",
        'exec 3< in.txt; read -r -u 3 first; python x.py "$first" <&3',
        "python x.py a b |& tee log.txt",
        "python x.py 2>&1 | tee -a a.txt; exit ${PIPESTATUS[0]}",
        "python - a b <<'E'\nimport sys\nE",
        "cat x.sh | bash -s -- 'a b' c",
        "bash -s 'a b' < x.sh",
        "bash <(echo 'python x.py sub $LR')",
        "xargs -n1 python x.py < in.txt",
        "find g -name '*.bin' | sort | xargs python x.py",
        "find g -name '1*' -exec python x.py {} +",
        f"time -p {two}",
        f"time ( {two} )",
        "python x.py **/*.txt *(.)",
        "noglob python x.py *",
        "set -x LR 3; python x.py $LR",
        "python x.py (echo a)",
        "python x.py; and python y.py",
        "setenv A 1; python x.py",
        f"declare -A M=([a]='1 2' [b]=3); python x.py \"${{M[a]}}\" ${{M[b]}} {quoted}",
        'readarray -t A < in.txt; python x.py "${A[@]}" ${#A[@]} "${A[@]:1}"',
        "printf -v V '%03d' 7; let N=2+3; ((M=GPUS*2)); python x.py $V $N $M",
        "python x.py --exit=3 || exit 9",
        "python x.py --exit=3; code=$?; python x.py $code; exit $code",
        "(set -e; false; python no.py); python x.py $?",
        "pushd sub > /dev/null; python x.py; popd > /dev/null; python y.py",
        "shopt -s nullglob globstar\npython x.py none*.zip **/*.bin",
        "set -f; python x.py *.txt $STAR",
        "shopt -s extglob\npython x.py !(a|b).txt",
        f"command -v python > /dev/null && {two}",
        ". ./x.sh a 'b c'; python x.py \"$SOURCED\"",
        'read -r V < in.txt; python x.py "$V"',
        "python a.py & python b.py & wait",
        "trap '' INT TERM; python x.py",
        "echo yes | python x.py",
        "yes | head -2 | python x.py",
        f"timeout 60 bash -c {shlex.quote(two)}",
        f"sh -ec {shlex.quote('python x.py $LR; python y.py')}",
        "env bash x.sh 'a b'",
        "bash -x x.sh a 2> trace.txt",
        "cd '数据' && python ../x.py *.txt",
        "mkdir -p '我的 目录' && cd '我的 目录' && python ../x.py > '输 出.log'",
        "cat <<-E | python x.py\n\ta $LR\n\tE",
        "python x.py <<< \"$SPACED\"$'\\n'",
        "python x.py > >(cat > sub.txt); wait $!; sleep 0.1",
        "A=(x 'y z'); A+=(w); python x.py \"${A[@]/#/--}\"",
        "python x.py ${BASH_VERSION:0:1} $LINENO ${BASH_SOURCE[0]##*/} ${FUNCNAME[0]:-top}",
        "i=0; while ((i < 2)); do python x.py $((i++)); done; until ((i == 0)); do ((i--)); done; python x.py $i",
        'case "$STAR" in *.txt) python x.py txt ;& b) python x.py fall ;; esac',
        f"{two} # $(python never.py)",
        'python x.py \\\n  --a 1 \\\n  --b "two\nlines"',
        '[ -n "$DEBUG" ] && export MORE=1; test -z "$NOPE" && python x.py',
        "local_rank=1; python x.py --local_rank=${local_rank} '${local_rank}'",
        f"nohup {two} > nohup.log 2>&1 & wait $!",
        "disown 2>/dev/null; jobs; python x.py",
        "python x.py $(seq 1 400)",
        f"if ! {two}; then python failed.py; fi",
        "kill -0 $$ && python x.py",
        "python x.py <(sort in.txt) > /dev/null; cat < <(python y.py) > made.txt",
        "umask 027; mkdir m; python x.py > m/o.txt; stat -c %a m > mode.txt",
        f"{{ {two}; }} 2>&1 | cat > both.txt",
        "export LR; readonly RO=1; python x.py $RO; RO=2; python after.py",
        "PS4='+ '; set -x; python x.py 2>/dev/null; { set +x; } 2>/dev/null",
        "hash -r; type -P python > where.txt; python x.py",
        "printf '%s\\n' a 'b c' | while IFS= read -r v; do python x.py \"$v\" < /dev/null; done",
        "eval \"python x.py $(printf '%q ' 'a b' '*' '$LR')\"",
        "select x in a; do python x.py $x; break; done < in.txt",
        "getopts ab: opt -b 5; python x.py $opt $OPTARG",
        "mapfile -t L < <(printf 'p\\nq\\n'); python x.py \"${L[*]}\"",
        "return 3 2>/dev/null; python x.py after-return",
        "python x.py --exit=3 &\nwait $! || python x.py heard $?",
    )
