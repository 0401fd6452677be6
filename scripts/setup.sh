# Makes .venv and installs Headway into it; sourced by start_training.sh and run_tests.sh.
# Does nothing when the venv is up to date, so a second start is quick.

fail() { printf '%s\n' "$@" >&2; exit 3; }

find_python() {
  local name
  for name in "${PYTHON:-}" python3 python3.13 python3.12 python3.11 python; do
    [ -n "$name" ] || continue
    command -v "$name" >/dev/null 2>&1 || continue
    if "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
      printf '%s' "$name"
      return 0
    fi
  done
  return 1
}

setup() { # setup EXTRAS [dev]: makes the venv with these extras, and beside it the board's script
  local extras=$1 python stamp want
  stamp=.venv/.headway-$(printf '%s' "$extras" | tr ',' '-')
  want=$(cat pyproject.toml constraints.txt scripts/setup.sh | cksum)
  setup_web "${2:-}" &
  local web=$!
  if [ -x .venv/bin/headway ] && [ "$(cat "$stamp" 2>/dev/null)" = "$want" ]; then
    wait "$web"
    return 0
  fi
  python=$(find_python) || fail \
    "error: Python 3.11 or newer is missing" \
    "hint:  install it (Debian/Ubuntu: sudo apt install python3 python3-venv), or set PYTHON=/path/to/python3.11" \
    "错误：缺少 Python 3.11 或更新版本" \
    "建议：安装它（Debian/Ubuntu：sudo apt install python3 python3-venv），或设置 PYTHON=/path/to/python3.11"
  "$python" -c 'import venv, ensurepip' >/dev/null 2>&1 || fail \
    "error: $python has no pip or venv" \
    "hint:  Debian/Ubuntu: sudo apt install python3-venv python3-pip" \
    "错误：$python 没有 pip 或 venv" \
    "建议：Debian/Ubuntu：sudo apt install python3-venv python3-pip"
  if [ ! -x .venv/bin/python ]; then
    printf 'making .venv with %s / 正在创建 .venv\n' "$("$python" --version)" >&2
    # A framework that is installed already (a driver-matched build, say) is used, not replaced.
    if "$python" -c 'import importlib.util, sys; sys.exit(importlib.util.find_spec("torch") is None)' 2>/dev/null; then
      "$python" -m venv --system-site-packages .venv
    else
      "$python" -m venv .venv
    fi
  fi
  local torch=()
  if ! .venv/bin/python -c 'import importlib.util, sys; sys.exit(importlib.util.find_spec("torch") is None)'; then
    torch=("torch==$(sed -n 's/^torch==//p' constraints.txt)")
    printf 'installing torch, this takes a while / 正在安装 torch，需要几分钟\n' >&2
  fi
  printf 'installing headway / 正在安装 headway\n' >&2
  pip_install "${torch[@]}" -e ".[$extras]" || fail \
    "error: pip could not install Headway; its words stand above" \
    "hint:  check the network or your pip mirror (pip config list), then run this again" \
    "错误：pip 安装 Headway 失败，原因见上文" \
    "建议：检查网络或 pip 镜像（pip config list），然后重新运行"
  wait "$web"
  printf '%s' "$want" >"$stamp"
}

setup_mindspore() { # makes .venv-mindspore for the MindSpore ranks; what needs it says so where it is not there
  local want python=.venv-mindspore/bin/python
  want=$(cat pyproject.toml constraints.txt constraints-mindspore.txt scripts/setup.sh | cksum)
  if [ "$(cat .venv-mindspore/.headway 2>/dev/null)" = "$want" ]; then
    return 0
  fi
  printf 'making .venv-mindspore, 2.7 GB / 正在创建 .venv-mindspore，约 2.7 GB\n' >&2
  # Numpy 1.x and what else is in use beside it must not come from the machine's own packages.
  [ -x "$python" ] || "$(find_python)" -m venv .venv-mindspore
  grep -v '^numpy==' constraints.txt >.venv-mindspore/constraints.txt
  if "$python" -m pip install --quiet --disable-pip-version-check --only-binary mindspore,numpy \
    -c .venv-mindspore/constraints.txt -c constraints-mindspore.txt -e '.[tfnet,mindspore]' \
    2> >(grep -v 'is ignored: it is neither a file nor a directory' >&2); then
    printf '%s' "$want" >.venv-mindspore/.headway
  else
    printf '%s\n' \
      "warning: pip could not install MindSpore (Python 3.11 or 3.12 is needed); its tests are skipped" \
      "警告：pip 无法安装 MindSpore（需要 Python 3.11 或 3.12），相关测试将跳过" >&2
  fi
}

setup_web() { # setup_web [dev]: builds the board's script where npm is there; without it the board draws on the server
  local want stamp=web/node_modules/.headway script=setup
  [ "${1:-}" = dev ] && script=setup:dev
  command -v npm >/dev/null 2>&1 && [ -f web/package-lock.json ] || return 0
  want=$script-$(cat web/package-lock.json web/vite.config.ts web/src/* scripts/setup.sh | cksum)
  if [ -f src/headway/ui/board/static/built/charts.js ] && [ "$(cat "$stamp" 2>/dev/null)" = "$want" ]; then
    return 0
  fi
  printf 'building the charts of headway board / 正在构建看板图表\n' >&2
  if timeout 180 npm --prefix web run --silent "$script" >web/build.log 2>&1 </dev/null; then
    printf '%s' "$want" >"$stamp"
  else
    printf '%s\n' \
      "warning: the board's charts could not be built (see web/build.log); its pages work without them" \
      "警告：看板图表构建失败（见 web/build.log），看板页面仍可使用" >&2
  fi
}

setup_programs() { # installs, as root of a Debian system, what some tests drive: a browser, Slurm, strace, ip; without them they are skipped
  local entry missing=()
  for entry in chromium:chromium slurmctld:slurm-wlm munged:munge strace:strace ip:iproute2; do
    command -v "${entry%%:*}" >/dev/null 2>&1 || missing+=("${entry#*:}")
  done
  [ "${#missing[@]}" -gt 0 ] || return 0
  printf 'installing for the tests: %s / 正在安装测试所需的程序\n' "${missing[*]}" >&2
  if ! { [ "$(id -u)" = 0 ] && apt_install "${missing[@]}"; } >/dev/null 2>&1 </dev/null; then
    printf '%s\n' \
      "warning: ${missing[*]} could not be installed; the tests that need them are skipped (sudo apt-get install ${missing[*]})" \
      "警告：无法安装 ${missing[*]}，相关测试将跳过（sudo apt-get install ${missing[*]}）" >&2
  fi
}

apt_install() {
  export DEBIAN_FRONTEND=noninteractive
  timeout 120 apt-get update -qq && timeout 300 apt-get install -y -qq --no-install-recommends "$@"
}

pip_install() {
  # With a framework of the user's own its version must not be forced back to the tested one.
  if .venv/bin/python -c 'import importlib.metadata as m, sys; sys.exit(m.version("torch").split("+")[0] == sys.argv[1])' \
    "$(sed -n 's/^torch==//p' constraints.txt)" 2>/dev/null; then
    grep -v '^torch==' constraints.txt >.venv/constraints.txt
  else
    cp constraints.txt .venv/constraints.txt
  fi
  .venv/bin/python -m pip install --quiet --disable-pip-version-check -c .venv/constraints.txt "$@" \
    2> >(grep -v 'is ignored: it is neither a file nor a directory' >&2)
}
