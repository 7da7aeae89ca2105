"""Renders tutorials/NN_name.py, the source in jupytext's percent format, to NN_name.ipynb.

Run from the top of the repository, all tutorials or those whose numbers are given:

    pip install jupytext nbclient ipykernel
    python tutorials/tools/render.py
    python tutorials/tools/render.py 00 04
"""

import os
import sys
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient

TUTORIALS = Path(__file__).resolve().parents[1]

# What the notebooks say about themselves, the same on every machine.
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def render(source: Path) -> None:
    """Execute a tutorial and write it, with its outputs, beside its source."""
    notebook = jupytext.read(source)
    # One thread: sums have the same order, so that the next rendering gives the same numbers.
    env = os.environ | {"PYTHONPATH": str(TUTORIALS.parent), "OMP_NUM_THREADS": "1"}
    env.pop("GDPNET_SMOKE", None)
    client = NotebookClient(notebook, timeout=1800, kernel_name="python3", record_timing=False)
    client.execute(cwd=str(TUTORIALS), env=env)
    for k, cell in enumerate(notebook.cells):
        cell.id = f"cell-{k}"
        cell.metadata = {}
        cell.outputs = _joined(cell.outputs) if cell.cell_type == "code" else None
        if cell.cell_type != "code":
            del cell["outputs"]
    notebook.metadata = nbformat.from_dict(METADATA)
    nbformat.validate(notebook)
    nbformat.write(notebook, source.with_suffix(".ipynb"))


def _joined(outputs: list) -> list:
    """Printed text in one piece, however the kernel happened to flush it."""
    joined: list = []
    for output in outputs:
        last = joined[-1] if joined else None
        if (
            last is not None
            and output.output_type == last.output_type == "stream"
            and output.name == last.name
        ):
            last.text += output.text
        else:
            joined.append(output)
    return joined


def main(numbers: list[str]) -> None:
    for source in sorted(TUTORIALS.glob("[0-9][0-9]_*.py")):
        if not numbers or source.name[:2] in numbers:
            print(source.name, flush=True)
            render(source)


if __name__ == "__main__":
    main(sys.argv[1:])
