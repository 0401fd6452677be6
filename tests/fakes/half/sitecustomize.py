"""A planner that gives CPU ranks fp16 as it gives it GPUs: a folder for PYTHONPATH, so that every command has it.

It refuses them fp16 because that is slow there, and not because it is wrong: all the rest, from the command to the
loss scale in the checkpoint, is what a GPU has.
"""

import importlib.machinery
import sys


def _allow(layout):
    choose = layout._choose_precision
    layout._choose_precision = lambda wanted, gpus: "fp16" if wanted == "fp16" else choose(wanted, gpus)


class _Finder:
    """Finds one module where it is, and changes it once it is loaded."""

    def find_spec(self, name, path=None, target=None):
        if name != "headway.planner.layout":
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        load = spec.loader.exec_module
        spec.loader.exec_module = lambda module: (load(module), _allow(module))
        return spec


sys.meta_path.insert(0, _Finder())
