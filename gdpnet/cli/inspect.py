"""`gdpnet inspect MODEL`: the rules, how often each applies, and how often chance satisfies it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from gdpnet.cli._common import (
    Build,
    Model,
    Split,
    built,
    errors_as_text,
    make_console,
    progress_bar,
)

if TYPE_CHECKING:
    from torch import Tensor

    from gdpnet import RuleModel
    from gdpnet.study.page import Page


@dataclass(frozen=True)
class _Share:
    """One line of the table of `gdpnet inspect`: shares in [0, 1], None where there is none."""

    name: str
    active: float | None
    random: float | None
    targets: float | None


def inspect(
    context: typer.Context,
    model: Model,
    html_file: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Also write a page of HTML.")
    ] = None,
    samples: Annotated[
        int, typer.Option(min=0, help="Inputs drawn from the model's sample(); 0 for none.")
    ] = 1000,
    split: Split = None,
    seed: Annotated[int, typer.Option(help="Seed of sample() and of the predictions.")] = 0,
    project: Annotated[
        bool,
        typer.Option(
            "--project", metavar="", help="Also project random predictions onto the rules."
        ),
    ] = False,
    arguments: Build = None,
) -> None:
    """The rules of a model, how often each applies, and how often chance satisfies it."""
    from gdpnet.study import load_model
    from gdpnet.study.samples import first_split, random_predictions, rule_samples

    with errors_as_text(context):
        loaded = load_model(model)
        rules = built(loaded, arguments)
        typer.echo(str(rules))
        shares: list[_Share] = []
        caption = ""
        if loaded.sample is not None and samples:
            split = split or first_split(loaded)
            x, y = rule_samples(loaded, rules, samples, split, seed)
            with progress_bar("Measuring") as show:
                shares = _shares(rules, x, y, seed, show)
            caption = _caption(rules, x, split, seed, shares)
            _print_shares(shares, caption)
            if project:
                _print_projection(rules, x, random_predictions(rules, x, y, seed))
        elif samples:
            typer.echo("(The model has no sample(), so nothing is said on how often rules apply.)")
        if html_file is not None:
            _page(loaded.name, rules, shares, caption).write(html_file)
            typer.echo(f"Wrote {html_file}")


def _shares(
    rules: RuleModel,
    x: Tensor,
    targets: Tensor | None,
    seed: int,
    show: Callable[[str, float], None],
) -> list[_Share]:
    """How often each rule is active, and satisfied where it is active.

    Args:
        rules: The rules.
        x: Inputs, (n, inputs).
        targets: Outputs that belong to x, (n, d), or None.
        seed: Seed of the random predictions.
        show: Told what is measured and which share of it is done.

    Returns:
        One line for each rule, then one for the global constraints and one for all together.
    """
    from gdpnet.study.samples import random_predictions, what_holds

    active = rules.active(x)
    random = random_predictions(rules, x, targets, seed)

    def holds(y: Tensor | None, what: str) -> Tensor | None:
        if y is None:
            return None
        return what_holds(rules, x, y, progress=lambda share: show(what, share))

    held = holds(random, "random predictions")
    target_held = holds(targets, "targets")
    lines = []
    soft = [not hard for hard in rules.data.hard]
    for column, name in enumerate(rules.names):
        rows = active[:, column]
        lines.append(
            _Share(
                f"{name} (has a price)" if soft[column] else name,
                _mean(rows),
                None if held is None else _mean(held[rows, column]),
                None if target_held is None else _mean(target_held[rows, column]),
            )
        )
    together = "all that have to hold together" if any(soft) else "all together"
    for offset, name in ((-2, "global constraints"), (-1, together)):
        lines.append(
            _Share(
                name,
                None,
                None if held is None else _mean(held[:, offset]),
                None if target_held is None else _mean(target_held[:, offset]),
            )
        )
    return lines


def _print_projection(rules: RuleModel, x: Tensor, predictions: Tensor | None) -> None:
    from gdpnet.study import projection_summary

    if predictions is None:
        typer.echo("(Nothing is projected: an output has no bounds to draw predictions from.)")
    else:
        typer.echo("\n" + projection_summary(rules, predictions, x))


def _mean(mask: Tensor) -> float | None:
    return mask.double().mean().item() if mask.numel() else None


def _caption(rules: RuleModel, x: Tensor, split: str, seed: int, shares: list[_Share]) -> str:
    """How the table came about."""
    from torch import bincount

    text = f"{len(x)} samples, split {split}, seed {seed}."
    if rules.names:
        counts = bincount(rules.active(x).sum(1), minlength=1)
        parts = [
            f"{number} active {100 * count / len(x):.1f} %"
            for number, count in enumerate(counts.tolist())
            if count
        ]
        text += f" Rules at once: {', '.join(parts)}."
    if shares[-1].random is None:
        text += " No random predictions: an output has no bounds."
    else:
        text += " Predictions are uniform in the outputs' bounds."
    if shares[-1].targets is not None and shares[-1].targets < 1.0:
        text += (
            " Targets that break a rule, by noise or otherwise, cannot be met by outputs that "
            "satisfy the rules."
        )
    return text


def _headers(shares: list[_Share]) -> list[str]:
    headers = ["rule", "active", "random prediction satisfies it"]
    return [*headers, "target satisfies it"] if shares[-1].targets is not None else headers


def _cells(share: _Share, columns: int) -> list[str]:
    values = (share.active, share.random, share.targets)[: columns - 1]
    return [share.name, *("" if v is None else f"{100 * v:.1f} %" for v in values)]


def _print_shares(shares: list[_Share], caption: str) -> None:
    headers = _headers(shares)
    table = Table(headers[0], box=None, header_style="bold", pad_edge=False)
    for header in headers[1:]:
        table.add_column(header, justify="right")
    for share in shares:
        table.add_row(*map(escape, _cells(share, len(headers))))
    console = make_console()
    console.print()
    console.print(table)
    console.print(caption, markup=False, highlight=False)


def _page(name: str, rules: RuleModel, shares: list[_Share], caption: str) -> Page:
    from gdpnet.study.page import Page

    page = Page(name, title=f"{name}: rules")
    page.markup(rules._repr_html_())
    if shares:
        headers = _headers(shares)
        page.section("How often")
        page.paragraph(caption)
        page.table(headers, [_cells(share, len(headers)) for share in shares], numbers=True)
    return page
