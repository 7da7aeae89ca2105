"""Draws docs/pictures/path.svg: the rooms in the order of their imports, and a call through them.

Rooms come from the layers in pyproject.toml, the files of a call from the tables in docs/path.md.

Run from the top of the repository: python docs/tools/path.py
"""

import re
import tomllib
from itertools import pairwise
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

ROOT = Path(__file__).resolve().parents[2]
PICTURE = ROOT / "docs" / "pictures" / "path.svg"
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#dddddd"
WIDE = 6.2  # of the column with the rooms
STEP = 1.15  # from one file to the next


def layers() -> list[list[str]]:
    """The rooms as import-linter has them: those that import others first, equals on one line."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    for contract in settings["tool"]["importlinter"]["contracts"]:
        if contract["type"] == "layers":
            return [re.split(r"\s*[|:]\s*", line) for line in contract["layers"]]
    raise LookupError("pyproject.toml has no contract of layers")


def files_of(heading: str) -> list[str]:
    """Files that a call passes, from the table below a heading of docs/path.md."""
    page = (ROOT / "docs" / "path.md").read_text(encoding="utf-8")
    section = re.split(r"^## ", page, flags=re.MULTILINE)
    (text,) = [part for part in section if part.startswith(f"{heading}\n")]
    return re.findall(r"^\| \d+ \| `([^`]+)` \|", text, re.MULTILINE)


def main() -> None:
    rooms = layers()
    backward = files_of("The backward pass")
    # Below, the rooms above all that it passes are left out.
    first = min(k for k, line in enumerate(rooms) if set(line) & set(map(_room, backward)))
    figure, (above, below) = plt.subplots(
        2, 1, figsize=(10, 9.6), height_ratios=[len(rooms) + 1, len(rooms) - first + 1],
        layout="constrained",
    )  # fmt: skip
    forward = files_of("project(rules, yhat, x)")
    _draw(above, rooms, forward, BLUE, "gdpnet.project(rules, yhat, x)")
    _draw(below, rooms[first:], backward, ORANGE, 'its backward pass, gradient="vertex"')
    # Letters as shapes look alike everywhere; no date, so that the same picture is the same file.
    with plt.rc_context({"svg.fonttype": "path", "svg.hashsalt": "path"}):
        figure.savefig(PICTURE, facecolor="white", metadata={"Date": None})


def _room(file: str) -> str:
    return f"gdpnet.{file.split('/')[0]}"


def _draw(ax: Axes, rooms: list[list[str]], files: list[str], colour: str, title: str) -> None:
    """Rooms as lines, and a call from file to file, each on the line of its room."""
    right = WIDE + STEP * (len(files) + 0.4)
    for k, line in enumerate(rooms):
        ax.plot([WIDE, right], [-k, -k], color=GREY, lw=1, zorder=0)
        for place, room in enumerate(line):
            ax.text(
                WIDE * (place + 0.5) / len(line), -k, room.removeprefix("gdpnet."),
                ha="center", va="center", size=10, gid=f"room {room}",
                bbox={"boxstyle": "round,pad=0.3", "fc": "#f2f7fa", "ec": "#7a9bb0"},
            )  # fmt: skip
    height = {room: -k for k, line in enumerate(rooms) for room in line}
    points = [(WIDE + STEP * (k + 0.7), height[_room(file)]) for k, file in enumerate(files)]
    ax.set_title(title, color=colour, size=12, x=(WIDE + right) / 2 / right)
    for one, other in pairwise(points):
        style = {"arrowstyle": "-|>", "color": colour, "shrinkA": 8, "shrinkB": 8, "lw": 1.3}
        ax.annotate("", other, one, arrowprops=style)
    up = False
    for k, ((x, y), file) in enumerate(zip(points, files, strict=True)):
        ax.plot(x, y, "o", color=colour, markersize=13)
        ax.text(x, y, str(k + 1), color="white", ha="center", va="center", size=9, weight="bold")
        # Where no arrow is: above a summit, below a valley, left of a slope; on the flat in turns.
        beside = [points[j][1] for j in (k - 1, k + 1) if 0 <= j < len(points)]
        up = not up if set(beside) == {y} else y > sum(beside) / len(beside)
        slope = min(beside) < y < max(beside)
        ax.text(
            x + 0.2 * slope, y + (0.36 if up else -0.36), file.split("/")[-1], size=8,
            ha="right" if slope else "center", va="bottom" if up else "top", gid=f"file {file}",
        )  # fmt: skip
    ax.set(xlim=(-0.1, right), ylim=(-len(rooms) + 0.3, 0.7))
    ax.axis("off")


if __name__ == "__main__":
    main()
