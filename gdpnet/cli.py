"""The command line: `gdpnet doctor`, `gdpnet inspect MODEL`.

Heavy imports stand inside the functions, so that `gdpnet --help` answers at once.
"""

from __future__ import annotations

import contextlib
import html
import importlib
import importlib.metadata
import os
import platform
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from torch import Tensor

    from gdpnet import RuleModel

app = typer.Typer(
    name="gdpnet",
    help="Pyomo.GDP rules as a torch layer: look at rules, and at what is installed.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,
)

# Distribution names; all but gurobipy are needed by the library's core.
_PACKAGES = (
    "gdpnet",
    "pyomo",
    "torch",
    "numpy",
    "scipy",
    "numba",
    "highspy",
    "gurobipy",
    "networkx",
)
_OPTIONAL = frozenset({"gurobipy"})


@dataclass(frozen=True)
class Check:
    """One line of `gdpnet doctor`.

    Attributes:
        name: What was looked at.
        ok: Whether it works.
        detail: The version, what a licence allows, or what is wrong and what to do.
        core: Whether gdpnet is of no use without it.
    """

    name: str
    ok: bool
    detail: str
    core: bool = True


@dataclass(frozen=True)
class _Share:
    """One line of the table of `gdpnet inspect`: shares in [0, 1], None where there is none."""

    name: str
    active: float | None
    random: float | None
    targets: float | None


@app.callback(invoke_without_command=True)
def _main(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version of gdpnet and leave.")
    ] = False,
    traceback: Annotated[
        bool, typer.Option("--traceback", help="Show the whole traceback of an error.")
    ] = False,
) -> None:
    context.obj = {"traceback": traceback}
    if version:
        typer.echo(f"gdpnet {_version('gdpnet') or 'unknown (not installed)'}")
        raise typer.Exit


@app.command()
def doctor() -> None:
    """Versions, solvers and what their licences allow, threads. Exit code 1 if the core fails."""
    console = _console()
    console.print(f"Python {platform.python_version()}, {escape(platform.platform())}")
    checks = [*_check_packages(), _check_highs(), _check_gurobi(), _check_threads()]
    table = Table(box=None, show_header=False, pad_edge=False)
    for check in checks:
        mark = "[green]ok[/]" if check.ok else "[red]fails[/]" if check.core else "[yellow]no[/]"
        table.add_row(mark, escape(check.name), escape(check.detail))
    console.print(table)
    broken = [check.name for check in checks if check.core and not check.ok]
    if broken:
        console.print(f"gdpnet cannot work here: {escape(', '.join(broken))}.", style="red")
        raise typer.Exit(1)
    console.print("All that gdpnet needs works.")


@app.command()
def inspect(
    context: typer.Context,
    model: Annotated[
        Path, typer.Argument(help="A .py file, or a folder with model.py, that defines build().")
    ],
    html_file: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Also write a page of HTML.")
    ] = None,
    samples: Annotated[
        int, typer.Option(min=0, help="Inputs drawn from the model's sample(); 0 for none.")
    ] = 1000,
    split: Annotated[str, typer.Option(help="Which split sample() draws from.")] = "iid",
    seed: Annotated[int, typer.Option(help="Seed of sample() and of the predictions.")] = 0,
    project: Annotated[
        bool, typer.Option("--project", help="Also project random predictions onto the rules.")
    ] = False,
) -> None:
    """The rules of a model, how often each applies, and how often chance satisfies it."""
    from gdpnet.study import load_model

    with _errors_as_text(show=context.obj["traceback"]):
        loaded = load_model(model)
        rules = loaded.build()
        typer.echo(str(rules))
        shares: list[_Share] = []
        caption = ""
        if loaded.sample is not None and samples:
            x, y = _inputs_and_targets(loaded.sample(samples, split=split, seed=seed))
            shares = _shares(rules, x, y, seed)
            caption = _caption(rules, x, split, seed, shares)
            _print_shares(shares, caption)
            if project:
                _print_projection(rules, x, _random_predictions(rules, x, y, seed))
        elif samples:
            typer.echo("(The model has no sample(), so nothing is said on how often rules apply.)")
        if html_file is not None:
            html_file.parent.mkdir(parents=True, exist_ok=True)
            html_file.write_text(_page(loaded.name, rules, shares, caption), encoding="utf-8")
            typer.echo(f"Wrote {html_file}")


@contextlib.contextmanager
def _errors_as_text(*, show: bool) -> Iterator[None]:
    """What the user can put right is told in a sentence, with exit code 2."""
    from gdpnet.errors import GdpnetError

    try:
        yield
    except (GdpnetError, OSError) as error:
        if show:
            raise
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(2) from None


def _console() -> Console:
    # Made on each call: it binds to the sys.stdout of that moment, which tests replace.
    console = Console()
    if not console.is_terminal:
        # In a file or a pipe nothing is wrapped at 80 columns: lines are for grep.
        console = Console(width=200)
    return console


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _check_packages() -> list[Check]:
    checks = []
    for name in _PACKAGES:
        core = name not in _OPTIONAL
        try:
            importlib.import_module("pyomo.environ" if name == "pyomo" else name)
        except Exception as error:  # a broken binary wheel raises more than ImportError
            reason = f"{type(error).__name__}: {error}"
            checks.append(Check(name, False, f"cannot be imported ({reason})", core))
        else:
            checks.append(Check(name, True, _version(name) or "version unknown", core))
    return checks


def _check_highs() -> Check:
    """Solve max x + y, x + 2y <= 6, x <= 4, y <= 3: 5 at (4, 1)."""
    try:
        import highspy

        solver = highspy.Highs()
        solver.silent()
        x, y = solver.addVariable(0, 4), solver.addVariable(0, 3)
        solver.addConstr(x + 2 * y <= 6)
        solver.maximize(x + y)
        value = solver.getObjectiveValue()
    except Exception as error:
        return Check("HiGHS", False, f"{type(error).__name__}: {error}")
    if abs(value - 5) > 1e-9:
        return Check("HiGHS", False, f"a small LP has optimum 5, but it says {value}")
    return Check("HiGHS", True, "solves; LP and MILP of any size, no licence needed")


def _check_gurobi() -> Check:
    try:
        import gurobipy
    except Exception as error:
        return Check("Gurobi", False, f"gurobipy cannot be imported ({error})", core=False)
    try:
        with gurobipy.Env(empty=True) as env:
            env.setParam("OutputFlag", 0)
            env.start()
            with gurobipy.Model(env=env) as small:
                small.addVar(ub=1.0, obj=-1.0)
                small.optimize()
                expires = _gurobi_expiry(small)
            # The licence in the wheel takes at most 2000 variables and 2000 constraints.
            with gurobipy.Model(env=env) as large:
                large.addVars(2001)
                try:
                    large.optimize()
                except gurobipy.GurobiError as error:
                    if error.errno != gurobipy.GRB.Error.SIZE_LIMIT_EXCEEDED:
                        raise
                    limits = "size-limited licence: at most 2000 variables and 2000 constraints"
                else:
                    limits = "full licence: models of any size"
    except gurobipy.GurobiError as error:
        return Check("Gurobi", False, f"no usable licence: {error}", core=False)
    return Check("Gurobi", True, f"solves; {limits}{expires}", core=False)


def _gurobi_expiry(model: Any) -> str:
    # YYYYMMDD as a number; 99999999 stands for a licence without end.
    digits = str(model.LicenseExpiration)
    if len(digits) != 8 or digits == "99999999":
        return ""
    return f", until {digits[:4]}-{digits[4:6]}-{digits[6:]}"


def _check_threads() -> Check:
    cores = os.cpu_count() or 1
    try:
        import torch
    except Exception:  # told above already
        return Check("threads", True, f"{cores} cores", core=False)
    return Check(
        "threads", True, f"{cores} cores, torch uses {torch.get_num_threads()}", core=False
    )


def _inputs_and_targets(drawn: Any) -> tuple[Tensor, Tensor | None]:
    """What `sample` returned, as x and, where it gave them, y."""
    from torch import as_tensor

    if isinstance(drawn, (tuple, list)):
        x = as_tensor(drawn[0])
        y = as_tensor(drawn[1]) if len(drawn) > 1 and drawn[1] is not None else None
        return x, y
    return as_tensor(drawn), None


def _shares(rules: RuleModel, x: Tensor, targets: Tensor | None, seed: int) -> list[_Share]:
    """How often each rule is active, and satisfied where it is active.

    Args:
        rules: The rules.
        x: Inputs, (n, inputs).
        targets: Outputs that belong to x, (n, d), or None.
        seed: Seed of the random predictions.

    Returns:
        One line for each rule, then one for the global constraints and one for all together.
    """
    active = rules.active(x)
    random = _random_predictions(rules, x, targets, seed)
    held = None if random is None else _held(rules, x, random)
    target_held = None if targets is None else _held(rules, x, targets)
    lines = []
    for column, name in enumerate(rules.names):
        rows = active[:, column]
        lines.append(
            _Share(
                name,
                _mean(rows),
                None if held is None else _mean(held[rows, column]),
                None if target_held is None else _mean(target_held[rows, column]),
            )
        )
    for offset, name in ((-2, "global constraints"), (-1, "all together")):
        lines.append(
            _Share(
                name,
                None,
                None if held is None else _mean(held[:, offset]),
                None if target_held is None else _mean(target_held[:, offset]),
            )
        )
    return lines


def _held(rules: RuleModel, x: Tensor, y: Tensor) -> Tensor:
    """Whether each rule, the global constraints and all together hold: (n, rules + 2)."""
    from torch import cat

    tolerance = 1e-6  # the default of rules.satisfied
    each = rules.violation(x, y) <= tolerance
    globally = rules.global_violation(x, y) <= tolerance
    return cat([each, globally[:, None], rules.satisfied(x, y)[:, None]], dim=1)


def _random_predictions(
    rules: RuleModel, x: Tensor, targets: Tensor | None, seed: int
) -> Tensor | None:
    """Uniform in the outputs' bounds (n, d); the targets' range stands in for missing bounds."""
    import torch

    lower, upper = rules.lower.to(torch.float64), rules.upper.to(torch.float64)
    if targets is not None:
        lower = torch.where(lower.isfinite(), lower, targets.amin(0).to(lower))
        upper = torch.where(upper.isfinite(), upper, targets.amax(0).to(upper))
    if not bool((lower.isfinite() & upper.isfinite()).all()):
        return None
    generator = torch.Generator().manual_seed(seed)
    unit = torch.rand(len(x), len(lower), generator=generator, dtype=torch.float64)
    return (lower + unit * (upper - lower)).to(x.dtype if x.is_floating_point() else unit.dtype)


def _print_projection(rules: RuleModel, x: Tensor, predictions: Tensor | None) -> None:
    from gdpnet.study import projection_summary

    if predictions is None:
        typer.echo("(Nothing is projected: an output has no bounds to draw predictions from.)")
    else:
        typer.echo("\n" + projection_summary(rules, x, predictions))


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
    console = _console()
    console.print()
    console.print(table)
    console.print(caption, markup=False, highlight=False)


_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: 1rem 0; }
th, td { text-align: left; padding: .2rem .8rem .2rem 0; vertical-align: top; }
th { border-bottom: 1px solid #999; }
table.shares td + td, table.shares th + th { text-align: right; }
footer { color: #666; margin-top: 2rem; }
"""


def _page(name: str, rules: RuleModel, shares: list[_Share], caption: str) -> str:
    """A page that needs no other file: the rules, and the table if there is one."""
    parts = [rules._repr_html_()]
    if shares:
        headers = _headers(shares)
        head = "".join(f"<th>{html.escape(header)}</th>" for header in headers)
        rows = "\n".join(
            "<tr>"
            + "".join(f"<td>{html.escape(cell)}</td>" for cell in _cells(share, len(headers)))
            + "</tr>"
            for share in shares
        )
        parts.append(f"<h2>How often</h2>\n<p>{html.escape(caption)}</p>")
        parts.append(f'<table class="shares">\n<tr>{head}</tr>\n{rows}\n</table>')
    title = html.escape(name)
    body = "\n".join(parts)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}: rules</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{title}</h1>\n{body}\n"
        f"<footer>gdpnet {html.escape(_version('gdpnet') or '')}</footer>\n</body>\n</html>\n"
    )


if __name__ == "__main__":
    sys.exit(app())
