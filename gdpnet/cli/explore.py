"""`gdpnet explore MODEL -o page.html`: drag a prediction, switch rules, see what they do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from gdpnet.cli._common import Build, Model, Split, built, errors_as_text, refuse_unwritable


def explore(
    context: typer.Context,
    model: Model,
    page: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The page to write.")
    ] = Path("explorer.html"),
    outputs: Annotated[
        str | None,
        typer.Option(help="The two outputs to show first, by name (f,c) or number (0,2)."),
    ] = None,
    samples: Annotated[
        int, typer.Option(min=0, help="Inputs from the model's sample() to choose from.")
    ] = 20,
    split: Split = None,
    seed: Annotated[int, typer.Option(help="Seed of sample().")] = 0,
    arguments: Build = None,
) -> None:
    """One page of HTML in which predictions are dragged and rules switched on and off."""
    from gdpnet.explore import explorer_page
    from gdpnet.study import load_model
    from gdpnet.study.samples import first_split, rule_samples

    with errors_as_text(context):
        refuse_unwritable(page)
        loaded = load_model(model)
        rules = built(loaded, arguments)
        x = None
        if rules.input_names and loaded.sample is not None and samples:
            x, _ = rule_samples(loaded, rules, samples, split or first_split(loaded), seed)
        chosen = None if outputs is None else _chosen(outputs, rules.output_names)
        values = [argument.partition("=")[2] for argument in arguments or ()]
        title = " ".join([loaded.name, *values])
        text = explorer_page(rules, title, x, chosen)
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(text, encoding="utf-8")
        typer.echo(f"Wrote {page}")


def _chosen(text: str, names: Sequence[str]) -> list[int | str]:
    """Outputs of a list with commas, which may stand in the names too: `P[g1,1],P[g2,1]`."""
    parts = [part.strip() for part in text.split(",")]
    # As written, with or without blanks behind the commas of a name.
    known = {name.replace(", ", ","): name for name in names}
    found: list[int | str] = []
    while parts:
        # The longest name that fits; numbers only where no output is called so.
        for size in range(len(parts), 0, -1):
            name = known.get(",".join(parts[:size]))
            if name is not None:
                found.append(name)
                del parts[:size]
                break
        else:
            part = parts.pop(0)
            found.append(int(part) if part.isdecimal() else part)
    return found
