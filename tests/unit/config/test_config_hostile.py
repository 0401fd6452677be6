"""Files made to hurt: each ends in a clear error, soon and small, by limits that are counts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from headway.config import ConfigErrors, load_config
from headway.config.files import read_to_end
from headway.config.tree import MAX_BYTES, MAX_DEPTH, MAX_VALUES

BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [{', '.join(['*' + chr(97 + i)] * 9)}]\n" for i in range(9)
)
CHAIN = "a0: &a0 [x]\n" + "".join(f"a{i + 1}: &a{i + 1} [*a{i}]\n" for i in range(100))
DEEP = 100_000

FILES = {
    "bomb.yaml": (BOMB, "config/too-many-values"),
    "chain.yaml": (CHAIN, "config/too-deep"),
    "wide-alias.yaml": ("a: &a " + "x" * 5000 + "\nb: [" + "*a," * 9000 + "]", "config/too-many-values"),
    "brackets.yaml": ("a: " + "[" * 60_000, "config/too-deep"),
    "spaced.yaml": ("a: " + "[ \n" * 20_000, "config/too-deep"),
    "braces.yaml": ("{a: " * 16_000, "config/too-deep"),
    "dashes.yaml": ("- " * 30_000, "config/too-deep"),
    "steps.yaml": ("".join(" " * i + "a:\n" for i in range(300)), "config/too-deep"),
    "keys.yaml": ("".join(f"k{i}: 1\n" for i in range(6000)), "config/too-many-values"),
    "digits.yaml": ("seed: " + "9" * 60_000, "config/number-too-large"),
    "large.yaml": ("seed: 9223372036854775808", "config/number-too-large"),
    "huge.yaml": ("lr: {base: 1e400}", "config/number-too-large"),
    "infinite.yaml": ("lr: {base: -.inf}", "config/number-too-large"),
    "nan.yaml": ("lr: {base: .nan}", "config/not-a-number"),
    "brackets.json": ("[" * 60_000, "config/too-deep"),
    "braces.json": ('{"a":' * 12_000, "config/too-deep"),
    "items.json": ('{"a": [' + "1," * 20_000 + "]}", "config/too-many-values"),
    "digits.json": ('{"seed": ' + "9" * 60_000 + "}", "config/number-too-large"),
    "huge.json": ('{"seed": 1e400}', "config/number-too-large"),
    "nan.json": ('{"seed": NaN}', "config/not-a-number"),
    "infinite.json": ('{"seed": -Infinity}', "config/not-a-number"),
    "backslash.json": ('{"a": "' + "\\" * 60_000, "config/json-open-quote"),
    "brackets.toml": ("a = " + "[" * 60_000, "config/too-deep"),
    "braces.toml": ("a = " + "{a=" * 20_000, "config/too-deep"),
    "dots.toml": ("a." * 30_000 + "a = 1", "config/too-deep"),
    "heads.toml": ("[" + "a." * 30_000 + "a]", "config/too-deep"),
    "tables.toml": ("[[a]]\n" * 10_000, "config/too-many-values"),
    "digits.toml": ("seed = " + "9_" * 30_000 + "9", "config/number-too-large"),
    "hex.toml": ("seed = 0x" + "f" * 60_000, "config/number-too-large"),
    "huge.toml": ("seed = 1e400", "config/number-too-large"),
    "nan.toml": ("seed = nan", "config/not-a-number"),
    "open.toml": ('a = """' + '""a' * 20_000, "config/toml-syntax"),
    "minus.py": ("a = " + "-" * 60_000 + "1", "config/too-deep"),
    "plus.py": ("a = " + "1+" * 30_000 + "1", "config/too-deep"),
    "hundred.py": ("a = " + "1+" * 100 + "1", "config/too-deep"),
    "brackets.py": ("a = " + "[" * 60_000, "config/py-syntax"),
    "calls.py": ("a = " + "f(" * 30_000, "config/py-syntax"),
    "dots.py": ("a = a" + ".a" * 30_000, "config/too-deep"),
    "power.py": ("seed = 9**9**9**9", "config/number-too-large"),
    "digits.py": ("seed = " + "9" * 60_000, "config/number-too-large"),
    "huge.py": ("seed = 1e400", "config/number-too-large"),
    "overflow.py": ("seed = 1e308 * 10", "config/number-too-large"),
    "items.py": ("a = [" + "1," * 20_000 + "]", "config/too-many-values"),
    "statements.py": ("1;" * 30_000, "config/too-many-values"),
    "utf16.yaml": ("seed: 1".encode("utf-16"), "config/encoding"),
    "utf16.json": ("{}".encode("utf-16-be"), "config/nul-byte"),
    "utf32.toml": ("seed = 1".encode("utf-32"), "config/encoding"),
    "nul.yaml": (b"seed: 1\n\x00", "config/nul-byte"),
    "nul.py": (b"seed = 1\n\x00", "config/nul-byte"),
    "bell.json": (b'{"a": "\x07"}', "config/unprintable"),
    "latin.yaml": ("name: caf\xe9".encode("latin-1"), "config/not-utf8"),
    "gbk.py": ("name = '配置'".encode("gbk"), "config/not-utf8"),
    "surrogate.yaml": (b"name: \xed\xa0\x80", "config/not-utf8"),
    "long.yaml": (b"#" * (MAX_BYTES + 1), "config/too-large"),
    "unknown.ini": (b"seed = 1", "config/unknown-format"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_hostile_file_ends_in_its_own_error(refuse, name):
    content, code = FILES[name]
    error = refuse(name, content)
    assert code in [problem.code for problem in error.problems], error.text()[:2000]
    assert all(problem.place.source == name for problem in error.problems)


def test_places_of_bad_bytes_are_exact(refuse):
    assert str(refuse("a.yaml", b"seed: 1\nname: \xc3\xa9\xff").problems[0].place) == "a.yaml:2:8"
    assert str(refuse("a.json", b'{\n "a": "\xc3\xa9\x00"}').problems[0].place) == "a.json:2:9"


def test_the_limits_themselves_pass(load, refuse):
    inside = MAX_DEPTH - 2  # the file's table and `extra` are two
    assert load("a.json", '{"extra": {"a": ' + "[" * (inside - 0) + "]" * (inside - 0) + "}}")
    assert refuse("b.json", '{"extra": {"a": ' + "[" * (inside + 1) + "]" * (inside + 1) + "}}")
    num_items = MAX_VALUES - 3 - 3
    assert load("c.json", '{"extra": {"a": [' + "1," * num_items + "]}}").config.task.extra["a"] == [1] * num_items
    assert load("d.yaml", b"#" * MAX_BYTES)
    assert load("e.yaml", "seed: 9223372036854775807").config.seed == 2**63 - 1


def test_a_hundred_megabytes_are_refused_without_being_read(write, recipe):
    path = write("a.yaml", "")
    os.truncate(path, 100 << 20)
    with pytest.raises(ConfigErrors) as refused:
        load_config(path, recipe=recipe)
    assert refused.value.problems[0].code == "config/too-large"
    assert "104,857,600" in refused.value.text()


def test_thousands_of_unknown_keys_are_counted_and_the_first_told(refuse):
    error = refuse("a.yaml", "".join(f"depth{i}x: 1\n" for i in range(2000)))
    assert (len(error.problems), error.num_untold) == (50, 1950)
    assert "1950" in error.text("en")
    assert "1950" in error.text("zh")


def test_pipes_devices_and_folders_are_refused_without_waiting(write, recipe, tmp_path):
    os.mkfifo("pipe.yaml")
    Path("folder.yaml").mkdir()
    Path("run").mkdir()
    Path("run/config.yaml").write_text("seed: 1")
    for source, code in (
        ("pipe.yaml", "config/not-a-file"),
        ("/dev/zero", "config/not-a-file"),
        (Path("folder.yaml"), "config/is-directory"),
        ("run", "config/is-run-directory"),
    ):
        with pytest.raises(ConfigErrors) as refused:
            load_config(source, recipe=recipe)
        assert refused.value.problems[0].code == code
    assert "type: run/config.yaml" in refused.value.text()


def test_a_file_that_is_not_there_names_the_nearest(write, recipe):
    write("balanced.yaml", "")
    with pytest.raises(ConfigErrors) as refused:
        load_config("balancd.yaml", recipe=recipe)
    assert refused.value.problems[0].code == "config/no-file-but"
    assert "type: balanced.yaml" in refused.value.text()
    for source, code in (("zzz.toml", "config/no-file"), ("no/such/a.yaml", "config/no-folder")):
        with pytest.raises(ConfigErrors) as refused:
            load_config(source, recipe=recipe)
        assert refused.value.problems[0].code == code


def test_what_has_no_end_is_not_taken_for_what_it_holds_just_now(tmp_path):
    os.mkfifo(tmp_path / "endless")
    reader = os.open(tmp_path / "endless", os.O_RDONLY | os.O_NONBLOCK)
    with open(tmp_path / "endless", "wb", buffering=0) as writer, open(reader, "rb", buffering=0) as file:
        writer.write(b"seed: 1\n")
        assert read_to_end(file, 100) is None
        writer.write(b"seed: 1\n" * 20)
        assert read_to_end(file, 100) == (b"seed: 1\n" * 13)[:100]


@pytest.mark.skipif(not os.access("/proc/kmsg", os.R_OK), reason="only root may open it")
def test_the_kernel_log_is_unreadable_whatever_it_holds(recipe):
    with pytest.raises(ConfigErrors) as refused:
        load_config(Path("/proc/kmsg"), recipe=recipe)
    assert refused.value.problems[0].code == "config/unreadable"


def test_a_link_to_itself_is_unreadable(write, recipe):
    os.symlink("loop.yaml", "loop.yaml")
    with pytest.raises(ConfigErrors) as refused:
        load_config("loop.yaml", recipe=recipe)
    assert refused.value.problems[0].code == "config/unreadable"


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_without_permission_is_unreadable(write, recipe):
    path = write("a.yaml", "seed: 1")
    path.chmod(0)
    with pytest.raises(ConfigErrors) as refused:
        load_config(path, recipe=recipe)
    assert refused.value.problems[0].code == "config/unreadable"


def test_the_worst_files_stay_within_a_hundred_megabytes(write):
    for name, (content, _) in FILES.items():
        write(name, content)
    script = (
        "import resource, sys\nfrom pathlib import Path\n"
        "from headway.config import ConfigErrors, Recipe, Section, load_config\n"
        "class Toy(Section):\n    depth: int = 1\n"
        "recipe = Recipe(name='toy', section=Toy, task='toy')\n"
        "load_config(None, recipe=recipe)\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "for name in sys.argv[1:]:\n"
        "    try:\n        load_config(Path(name), recipe=recipe)\n"
        "    except ConfigErrors as error:\n        error.text('zh')\n"
        "    else:\n        raise SystemExit(name)\n"
        "print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, *FILES], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 100


def test_loading_imports_ruamel_only_for_yaml(write):
    write("a.json", '{"depth": 2}')
    script = (
        "import sys\nfrom headway.config import Recipe, Section, load_config\n"
        "class Toy(Section):\n    depth: int = 1\n"
        "load_config('a.json', recipe=Recipe(name='toy', section=Toy, task='toy'), overrides=['seed=2'])\n"
        "assert 'pydantic' in sys.modules\n"
        "print([name for name in ('ruamel.yaml', 'torch', 'tomllib', 'click') if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
