"""Texts are English in these tests, whatever another test has chosen."""

import pytest

from headway.messages import set_language


@pytest.fixture(autouse=True)
def _english():
    set_language("en")
    yield
    set_language("en")
