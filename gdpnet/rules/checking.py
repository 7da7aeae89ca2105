"""gdpnet.check: can this model be used, and what stands in the way?"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from gdpnet.errors import RuleError
from gdpnet.ir.data import Role

if TYPE_CHECKING:
    from gdpnet.rules.reader import Reader

_SENTENCE = re.compile(r"(?<=\.)\s+(?=[A-Z])")


class Obstacle(NamedTuple):
    """One thing that keeps a model from being read.

    Attributes:
        component: name of the component, or of the argument, that it is about.
        reason: what is wrong with it.
        advice: what to do; empty where the reason says all.
    """

    component: str
    reason: str
    advice: str

    def __str__(self) -> str:
        return f"{self.reason} {self.advice}".rstrip()


class ModelSizes(NamedTuple):
    """How much of a model was read.

    Attributes:
        outputs: columns of y.
        auxiliaries: Vars in rules or constraints that are no outputs.
        inputs: columns of x.
        rules: Disjunctions that are not nested, and Constraints with a condition.
        disjuncts: of all Disjunctions, nested ones included.
        rows: linear and convex rows, without the bounds of Vars that are numbers.
    """

    outputs: int = 0
    auxiliaries: int = 0
    inputs: int = 0
    rules: int = 0
    disjuncts: int = 0
    rows: int = 0

    def __str__(self) -> str:
        return ", ".join(f"{name} {count}" for name, count in self._asdict().items())


@dataclass(frozen=True)
class ModelCheck:
    """What `gdpnet.check` found; it prints as text, and is true where the model can be used.

    Attributes:
        problems: all that stands in the way, in the order in which it was met.
        notes: what is no obstacle but worth knowing, such as Vars without bounds.
        sizes: of what could be read.
    """

    problems: tuple[Obstacle, ...]
    notes: tuple[str, ...]
    sizes: ModelSizes

    @property
    def ok(self) -> bool:
        """Whether `RuleModel` can be built with the same arguments."""
        return not self.problems

    def __bool__(self) -> bool:
        return self.ok

    def __repr__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        count = len(self.problems)
        stands = "1 problem" if count == 1 else f"{count} problems"
        yield (
            "gdpnet can use this model." if self.ok else f"gdpnet cannot use this model: {stands}."
        )
        for number, problem in enumerate(self.problems, 1):
            yield f"{number}. {problem.reason}"
            if problem.advice:
                yield f"   {problem.advice}"
        yield f"Read: {self.sizes}"
        for note in self.notes:
            yield f"Note: {note}"


def check(
    model: Any,
    outputs: Sequence[Any] | str | None = None,
    inputs: Sequence[Any] = (),
    input_bounds: Mapping[Any, Any] | Sequence[Any] | None = None,
    *,
    prices: Mapping[Any, Any] | None = None,
    importances: Mapping[Any, Any] | None = None,
) -> ModelCheck:
    """Whether a Pyomo model can be used, with every obstacle at once.

    `RuleModel` with the same arguments can be built where it says so, and else raises the first of
    its problems.

    Args:
        model: a ConcreteModel or Block.
        outputs: as in `RuleModel`; where not given all continuous Vars (`"continuous"`).
        inputs: as in `RuleModel`.
        input_bounds: as in `RuleModel`.
        prices: as in `RuleModel`.
        importances: as in `RuleModel`.

    Example:
        >>> import pyomo.environ as pyo, gdpnet
        >>> m = pyo.ConcreteModel()
        >>> m.f, m.c = pyo.Var(bounds=(0, 1)), pyo.Var(bounds=(0, 1))
        >>> m.n = pyo.Var(domain=pyo.Integers)
        >>> m.power = pyo.Constraint(expr=m.f * m.c <= 0.5)
        >>> m.steps = pyo.Constraint(expr=m.f <= 0.1 * m.n)
        >>> found = gdpnet.check(m)
        >>> found.ok, [problem.component for problem in found.problems]
        (False, ['power', 'n'])
        >>> print(found.problems[1].reason)
        Var 'n' is integer without finite bounds.
        >>> print(found.problems[1].advice)
        Give it bounds: they make the search for its value finite.
    """
    from gdpnet.rules.arguments import CONTINUOUS
    from gdpnet.rules.reader import survey

    try:
        given = {"prices": prices, "importances": importances}
        wanted = CONTINUOUS if outputs is None else outputs
        reader = survey(model, wanted, inputs, input_bounds, **given)
    except RuleError as error:
        return ModelCheck((_obstacle("model", error),), (), ModelSizes())
    return ModelCheck(
        tuple(_obstacle(component, error) for component, error in reader.obstacles.listed()),
        tuple(_notes(reader)),
        _sizes(reader),
    )


def _obstacle(component: str, error: RuleError) -> Obstacle:
    reason, *advice = _SENTENCE.split(str(error), maxsplit=1)
    return Obstacle(component, reason, " ".join(advice))


def _sizes(reader: Reader) -> ModelSizes:
    return ModelSizes(
        outputs=reader.outputs,
        auxiliaries=len(reader.columns.all) - reader.outputs,
        inputs=len(reader.input_params),
        rules=len(reader.rules),
        disjuncts=sum(len(clause.disjuncts) for clause in reader.logic.clauses if not clause.logic),
        rows=sum(row.role is not Role.ARGUMENT for row in reader.rows.all),
    )


def _notes(reader: Reader) -> Iterator[str]:
    for name in reader.ignored:
        yield f"Objective '{name}' is ignored: gdpnet minimises the distance to the prediction."
    open_ended = _without_bounds(reader)
    if open_ended:
        listed = ", ".join(open_ended[:8]) + (", ..." if len(open_ended) > 8 else "")
        yield (
            f"{listed} {'has' if len(open_ended) == 1 else 'have'} no finite bounds. The exact "
            "projection needs none; relaxations (the hull) and pictures do."
        )


def _without_bounds(reader: Reader) -> list[str]:
    """Vars with an open end; a global row in one Var is a bound of it, which may depend on x."""
    ends = [[column.lower, column.upper] for column in reader.columns.all]
    for row in (reader.rows.all[i] for i in reader.rows.everywhere):
        if len(row.terms) == 1 and not row.curves:
            ((j, a),) = row.terms
            if a.is_number and a.number:
                for side in (0, 1) if row.equality else (int(a.number > 0),):
                    ends[j][side] = 0.0
    pairs = zip(reader.columns.all, ends, strict=True)
    return [column.name for column, both in pairs if not all(map(math.isfinite, both))]
