"""Found by the interpreter before the user's own sitecustomize: start the hook, then hand over to theirs.

Nothing here may ever break a script, so whatever goes wrong only switches the hook off.
"""

import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


def _start_hook():
    if not os.environ.get("HEADWAY_HOOK_RUN"):
        return
    import _headway_hook

    _headway_hook.start()


def _run_the_users_own():
    """Import the sitecustomize that would have been found without us, under its own name."""
    import importlib.machinery
    import importlib.util

    rest = [place for place in sys.path if os.path.abspath(place or ".") != _HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", rest)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


try:
    _start_hook()
except Exception as err:  # border: the user's script comes first
    if sys.stderr is not None:
        sys.stderr.write(f"[headway] the hook is off in this process: {err!r}\n")
# The interpreter needs the folder only until here; the environment keeps it for processes started from this one.
sys.path[:] = [place for place in sys.path if os.path.abspath(place or ".") != _HERE]
_run_the_users_own()
