"""GDPNET_DATA: the folder of all data sets, or that of one of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from gdpnet.study import find_data


@pytest.fixture
def file(tmp_path: Path) -> Path:
    folder = tmp_path / "data" / "plant"
    folder.mkdir(parents=True)
    (folder / "days.csv").touch()
    return folder / "days.csv"


@pytest.mark.parametrize("up", [0, 1], ids=["data set", "all data sets"])
def test_both_meanings(file: Path, up: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GDPNET_DATA", str(file.parents[up]))
    assert find_data("plant", "days.csv") == file


def test_home_is_understood(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(file.parents[2]))
    monkeypatch.setenv("GDPNET_DATA", "~/data")
    assert find_data("plant", "days.csv") == file


@pytest.mark.parametrize("empty", [True, False])
def test_not_set(monkeypatch: pytest.MonkeyPatch, empty: bool) -> None:
    if empty:
        monkeypatch.setenv("GDPNET_DATA", "")
    else:
        monkeypatch.delenv("GDPNET_DATA", raising=False)
    assert find_data("plant", "days.csv") is None


def test_not_there(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GDPNET_DATA", str(file.parent))
    with pytest.raises(FileNotFoundError, match="GDPNET_DATA") as raised:
        find_data("other", "x.csv")
    told = str(raised.value)
    for part in (str(file.parent / "other" / "x.csv"), str(file.parent / "x.csv"), "holds other/"):
        assert part in told
