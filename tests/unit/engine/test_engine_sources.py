"""Which files an answer of the trace depends on."""

import importlib
import sys

import headway
from headway.trace.recipe import own_sources


def test_own_modules_count_and_installed_ones_do_not(tmp_path, monkeypatch):
    (tmp_path / "beside_a_recipe.py").write_text("width = 16\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.import_module("beside_a_recipe")
    try:
        found = own_sources()
    finally:
        del sys.modules["beside_a_recipe"]
    assert str((tmp_path / "beside_a_recipe.py").resolve()) in found
    assert not [path for path in found if "site-packages" in path or path.startswith(headway.__path__[0])]
