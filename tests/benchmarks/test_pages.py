"""Pages show what is stored, and what is stored says where it comes from."""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path

import fill
import pytest
from _results import PUBLISHED, ROOT, Results, read_rows, write_rows
from run_all import SCRIPTS
from tables import TABLES, VALUES, Stored, described
from tables._stored import number, percent, span

from gdpnet.study.stamp import stamp

EVERYTHING = {
    "commit", "dirty", "date", "gdpnet", "python", "torch", "numpy", "pyomo", "highspy", "cpu",
    "cores", "variant", "load", "command",
}  # fmt: skip


def test_pages_show_what_is_stored() -> None:
    assert "\n".join(fill.differences()) == ""


def test_everything_described_is_shown_somewhere() -> None:
    pages = "".join(path.read_text(encoding="utf-8") for path in fill.pages())
    assert [name for name in TABLES if f"<!-- bench {name} -->" not in pages] == []
    assert [name for name in VALUES if f"<!-- = {name} -->" not in pages] == []


FILLED = re.compile(
    r"<!-- bench .*?<!-- /bench -->|<!-- = .*?<!-- /= -->|^```.*?^```|`[^`\n]*`",
    re.DOTALL | re.MULTILINE,
)
# What somebody took, or saved. A limit or what the paper says was not measured.
MEASURED = re.compile(
    r"\d\s(?:us|µs|ms|s|MB|GB|microseconds|milliseconds|seconds)\b"
    r"|\d\stimes (?:as|faster|longer|slower|more|less)\b"
)
GIVEN = re.compile(r"\bpaper\b|\blimit\b")


def by_hand(page: str) -> list[str]:
    """Paragraphs that tell of a measurement which nothing fills."""
    paragraphs = re.split(r"\n\s*\n", FILLED.sub("", page))
    return [p for p in paragraphs if MEASURED.search(p) and not GIVEN.search(p)]


@pytest.mark.parametrize(
    "path",
    [ROOT / "README.md", ROOT / "benchmarks/README.md", *sorted((ROOT / "docs").rglob("*.md"))],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_no_measurement_is_written_by_hand(path: Path) -> None:
    assert by_hand(path.read_text(encoding="utf-8")) == []


def test_measurements_by_hand_are_found() -> None:
    filled = (
        "It takes <!-- = exact.memory -->22 MB<!-- /= --> and `0.1 s`.\n\nThe paper needs 0.92 s."
    )
    assert by_hand(filled) == []
    assert by_hand(f"{filled}\n\nBy hand, 0.3 seconds.") == ["By hand, 0.3 seconds."]
    assert by_hand("HiGHS takes 12 times as long.") == ["HiGHS takes 12 times as long."]


@pytest.mark.parametrize("name", list(SCRIPTS))
def test_every_script_stands_in_the_table_of_scripts(name: str) -> None:
    page = (PUBLISHED.parent / "README.md").read_text(encoding="utf-8")
    assert f"| `{name}.py` |" in page


@pytest.mark.parametrize("path", sorted(PUBLISHED.glob("*.csv")), ids=lambda path: path.stem)
def test_stored_rows_have_a_stamp(path: Path) -> None:
    made = json.loads(path.with_suffix(".json").read_text())
    assert made.keys() >= EVERYTHING or made.keys() >= {"date", "source"}
    assert described(made)
    assert read_rows(path)


def test_no_stamp_is_without_its_rows() -> None:
    assert all(path.with_suffix(".csv").exists() for path in PUBLISHED.glob("*.json"))


def test_rows_return_as_they_were(tmp_path: Path) -> None:
    rows = [{"name": "a, b", "seconds": 0.1 + 0.2, "count": 3}, {"name": 'c "d"', "met": True}]
    write_rows(tmp_path / "rows.csv", rows)
    assert (tmp_path / "rows.csv").read_text().splitlines()[0] == "name,seconds,count,met"
    assert read_rows(tmp_path / "rows.csv") == [
        {**rows[0], "met": None},
        {"seconds": None, "count": None, **rows[1]},
    ]


def test_results_keep_tables_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = Results("trial", argparse.Namespace(publish=False))
    results.folder = tmp_path
    results.add("one", k=1, seconds=1e-3 / 3)
    results.add("other", k=2, seconds=None)
    results.write()
    assert "0.0003333" in capsys.readouterr().out
    stored = Stored(results.folder)
    assert stored["trial.one"].value("seconds", k=1) == 1e-3 / 3
    assert stored["trial.other"] == [{"k": 2, "seconds": None}]
    assert stored.stamp("trial.one").keys() >= EVERYTHING | {"seconds"}


@pytest.mark.parametrize("value", ["1.5", "True", "", "nan", [1], {}])
def test_only_what_is_read_back_the_same_is_taken(value: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        Results("trial", argparse.Namespace(publish=False)).add(value=value)


def test_a_stamp_has_everything() -> None:
    made = stamp()
    assert made.keys() >= EVERYTHING
    assert made["cpu"]
    assert len(made["load"]) == 3
    assert described(made | {"seconds": 60.0}).endswith("1.0 minutes.")


def test_a_changed_number_is_told(tmp_path: Path) -> None:
    write_rows(tmp_path / "rules.csv", [{"what": "build", "samples": None, "seconds": 0.0183}])
    stored = Stored(tmp_path)
    page = fill.filled("before\n<!-- bench rules -->\nold\n<!-- /bench -->\nafter", stored)
    assert "| build | 18.3 |  |" in page
    assert page.startswith("before\n")
    assert page.endswith("\nafter")
    assert fill.filled(page, stored) == page
    assert fill.filled(page.replace("18.3", "18.2"), stored) == page


@pytest.mark.parametrize(
    "page",
    [
        "<!-- bench rules -->\n",
        "x <!-- = exact.memory -->\n<!-- /= -->",
        "<!-- bench nothing of this name -->\n<!-- /bench -->",
        "x <!-- = nothing of this name --><!-- /= -->",
        "<!-- = exact.memory -->at the start of a line<!-- /= -->",
    ],
)
def test_marks_that_cannot_be_filled_are_errors(page: str) -> None:
    with pytest.raises(ValueError, match=r"mark|called"):
        fill.filled(page, Stored(PUBLISHED))


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    page = "<!-- bench rules -->\n<!-- /bench -->\nx <!-- = exact.memory -->22 MB<!-- /= -->"
    told = fill.filled(page, Stored(tmp_path))
    assert "Not measured yet: `benchmarks/results/rules.csv`" in told
    assert "-->(not measured)<!--" in told


def test_numbers() -> None:
    values = (0.5394, 9.99, 34.4, 185.2, 14650.0, 0.0, None)
    assert [number(x) for x in values] == ["0.54", "10", "34", "185", "14,650", "0", ""]
    assert [percent(x, 1) for x in (1.0, 0.8642, -1e-9)] == ["100 %", "86.4 %", "0.0 %"]
    assert span([3.91, None, 3.2]) == "3.2 to 3.9"
