"""Loading files and words with the toy recipe."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from config_toy import RECIPE

from headway.config import ConfigErrors, LoadedConfig, Recipe, load_config


@pytest.fixture
def recipe() -> Recipe:
    """The toy recipe."""
    return RECIPE


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str | bytes], Path]:
    """Write a file into an empty folder that is the current one, so that places are short."""
    monkeypatch.chdir(tmp_path)

    def write_file(name: str, content: str | bytes) -> Path:
        path = Path(name)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write_file


Load = Callable[..., LoadedConfig]


@pytest.fixture
def load(write: Callable[[str, str | bytes], Path]) -> Load:
    """Load a file of this name and content with the toy recipe."""

    def load_file(name: str, content: str | bytes, *overrides: str, **environ: str) -> LoadedConfig:
        return load_config(write(name, content), recipe=RECIPE, overrides=overrides, environ=environ)

    return load_file


@pytest.fixture
def refuse(load: Load) -> Callable[..., ConfigErrors]:
    """Load what must be refused, and return the refusal after a look at both of its texts."""

    def refuse_file(name: str, content: str | bytes, *overrides: str, **environ: str) -> ConfigErrors:
        with pytest.raises(ConfigErrors) as refused:
            load(name, content, *overrides, **environ)
        error = refused.value
        assert error.exit_code == 2
        for lang in ("en", "zh"):
            assert all(problem.text(lang) for problem in error.problems)
            assert len(error.text(lang)) < 40_000
        return error

    return refuse_file


@pytest.fixture
def words(recipe: Recipe) -> Load:
    """Load from the command line alone."""

    def load_words(*overrides: str, **environ: str) -> LoadedConfig:
        return load_config(None, recipe=recipe, overrides=overrides, environ=environ)

    return load_words
