"""A browser for all tests of the explorer."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.explore._chromium import EXECUTABLE, Page


@pytest.fixture(scope="package")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    if EXECUTABLE is None:
        pytest.skip("no Chromium is installed")
    browser = Page(tmp_path_factory.mktemp("chromium"))
    yield browser
    browser.close()
