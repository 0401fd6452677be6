"""Files of weights: which tensors they hold and where the bytes are, read without torch and without running a pickle.

In: a path. Out: `Weights`, names with types, shapes and places. `pickle_table.py` is the only code that unpickles a
stranger's torch file, in a process that can do nothing else; `layout.py` and `strict.py` are the safetensors format,
`upstream.py` maps the names of other people's files to ours.
"""

from headway.weights.files import PARTS, SUFFIXES, Weights, open_weights, read_pickle, read_weights
from headway.weights.upstream import Adopted, Shape, Theirs, Upstream, adopt_names, fresh_optimizer

__all__ = [
    "PARTS",
    "SUFFIXES",
    "Adopted",
    "Shape",
    "Theirs",
    "Upstream",
    "Weights",
    "adopt_names",
    "fresh_optimizer",
    "open_weights",
    "read_pickle",
    "read_weights",
]
