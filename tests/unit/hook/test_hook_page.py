"""The page that a hooked process writes and the supervisor reads: two programs, one layout."""

from __future__ import annotations

import importlib.util
from types import ModuleType

from headway.launch.hook import HOOK_SITE, page
from headway.telemetry import heartbeat


def hook() -> ModuleType:
    """Load the hook's own module, which is never imported here, without running it as a hook."""
    spec = importlib.util.spec_from_file_location("hook_under_test", HOOK_SITE / "_headway_hook.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_hook_and_supervisor_have_the_same_layouts() -> None:
    site = hook()
    assert site.OWN.format == page._OWN.format
    assert site.BEAT.format == heartbeat._LAYOUT.format
