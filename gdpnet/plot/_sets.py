"""Rules at one input as sets of points: where they hold, and what a relaxation makes of that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial, reduce
from typing import Any

import numpy as np
import torch

from gdpnet.errors import InputError, RuleError
from gdpnet.ir.batch import as_batch
from gdpnet.ir.prices import unbroken
from gdpnet.ir.rules import refuse_curved, refuse_priced
from gdpnet.lp.program import LinearProgram, SparseLinearProgram
from gdpnet.model import RuleModel
from gdpnet.plot._curved import within_curves
from gdpnet.plot._polygons import common, extremes, hull, shadow, without_covered
from gdpnet.relaxation.blocks import box
from gdpnet.relaxation.feasibility import FeasibilityCheck
from gdpnet.relaxation.layouts import layouts_of
from gdpnet.relaxation.plan import Plan
from gdpnet.relaxation.products import products
from gdpnet.relaxation.program import RelaxationProgram, complete
from gdpnet.solve.milp.cuts import broken_tangents
from gdpnet.solve.milp.sample import RulesAtSample

Array = np.ndarray
Relaxation = str | Plan


def name_of(relaxation: Relaxation, rules: RuleModel) -> str:
    """What a relaxation is called in a picture."""
    plan = Plan.of(relaxation, rules)
    if plan is None:
        return "DNF"
    merged = ["+".join(cluster) for cluster in plan.clusters if len(cluster) > 1]
    return f"pDNF {', '.join(merged)}" if merged else "CNF"


class RulesAt:
    """Rules at one input.

    Args:
        rules: the rules.
        x: inputs of one sample, `p`, or None where there are none.

    Attributes:
        rules: the rules.
        x: `1 x p`.
        active: names of the rules that apply.
        lower, upper: bounds of the outputs there, `d`.
    """

    def __init__(self, rules: RuleModel, x: Any) -> None:
        if not isinstance(rules, RuleModel):
            raise InputError(f"rules: expected a RuleModel, got {type(rules).__name__}.")
        batch = as_batch(x, None, rules.input_names, rules.output_names, inputs_only=True)
        inputs = batch.x if rules.input_names else torch.zeros(1, 0, dtype=torch.float64)
        if len(inputs) != 1:
            raise InputError(
                f"x: a picture shows one input with {len(rules.input_names)} values, "
                f"got {len(inputs)} of them."
            )
        self.rules, self.x = rules, inputs
        self._layouts = layouts_of(rules)
        ready = self._layouts.ready.rules
        self._evaluated = ready.evaluate(inputs)
        ready.refuse_unusable(self._evaluated)
        self._sample = RulesAtSample.of(ready, self._evaluated, 0)
        self._applies: list[bool] = self._evaluated.clauses[0].tolist()
        applies = rules.active(inputs)[0].tolist()
        self.active = tuple(n for n, on in zip(rules.names, applies, strict=True) if on)
        lower, upper = box(ready.data, self._sample.bound[None])
        self.lower, self.upper = lower[0], upper[0]

    def refuse_unbounded(self, outputs: tuple[int, ...]) -> None:
        """Raise where an output that is to be an axis has no bounds."""
        ends = np.isfinite(self.lower) & np.isfinite(self.upper)
        names = [self.rules.output_names[j] for j in outputs if not ends[j]]
        if names:
            one = len(names) == 1
            raise InputError(
                f"outputs: {', '.join(names)} {'has' if one else 'have'} no finite bounds, so a "
                f"picture has no end there. Give {'it' if one else 'them'} bounds in the Pyomo "
                "model, such as m.y.setub(10)."
            )

    def size(self, outputs: tuple[int, int]) -> Array:
        """Extent of a picture of two outputs, `2`."""
        width = self.upper[list(outputs)] - self.lower[list(outputs)]
        return np.where(width > 0, width, 1.0)

    # ---- where the rules hold --------------------------------------------------------------

    def priced(self) -> dict[str, float]:
        """Active rules that may be broken, and what that costs here."""
        data = self.rules.data
        evaluated = self.rules.evaluate(self.x).prices[0].tolist()
        price = dict(zip(data.priced, evaluated, strict=True))
        clauses = [data.clauses[rule.clause] for rule in data.rules]
        breaking = dict(zip(self.rules.names, (c.breaking for c in clauses), strict=True))
        return {name: price.get(breaking[name], 0.0) for name in self.active if breaking[name] >= 0}

    def holding(self, rule: str) -> RulesAt:
        """The same where a rule that may be broken has to hold."""
        held = unbroken(self.rules.data, [self.rules.names.index(rule)])
        return RulesAt(RuleModel.from_data(held), self.x if self.rules.input_names else None)

    def union(
        self,
        outputs: tuple[int, int],
        at: Mapping[int, float],
        chosen: Sequence[int] | None = None,
    ) -> list[Array]:
        """Polygons whose union is where active rules, global constraints and bounds hold.

        Args:
            outputs: the two outputs of the picture.
            at: values of the other ones.
            chosen: rules that count; all active ones where not given.
        """
        chosen = self._chosen() if chosen is None else chosen
        sample, data = self._sample, self._layouts.ready.rules.data
        columns = list(data.columns)
        for j, value in at.items():
            columns[j] = replace(columns[j], lower=value, upper=value)
        sliced = replace(data, columns=tuple(columns))
        for j, value in at.items():
            if not self.lower[j] <= value <= self.upper[j]:
                return []
        feasibility = FeasibilityCheck(sliced, [(v, v) for v in self.x[0].tolist()])
        if feasibility.empty:
            return []
        try:
            terms = products(
                sliced, chosen, self._applies, self._layouts.ready.logic.same, feasibility
            )
        except RuleError as error:
            raise InputError(
                "The region is a union of too many pieces to draw: "
                f"{str(error).split(', too many')[0]}. Draw a model with fewer rules, or inputs at "
                "which fewer of them apply."
            ) from None
        lower = np.array([c.lower for c in columns])
        upper = np.array([c.upper for c in columns])
        size, found = self.size(outputs), []
        for rows in {frozenset(term.rows) for term in terms}:
            every = sorted(rows | set(data.global_rows))
            own = [i for i in every if not data.rows[i].curves]
            bound = sample.bound[own]
            program = LinearProgram(
                cost=np.zeros(len(columns)),
                matrix=sample.matrix[own],
                row_lower=np.where(sample.equality[own], bound, -np.inf),
                row_upper=bound,
                lower=lower,
                upper=upper,
                integer=np.zeros(len(columns), dtype=bool),  # decided by the rows of the product
            )
            if own == every:
                found.append(shadow(program, outputs, size))
            else:
                curved = [i for i in every if data.rows[i].curves]
                found.append(self._curved(program, curved, outputs, size))
        return without_covered([corners for corners in found if len(corners)], size)

    def _curved(
        self, program: LinearProgram, curved: list[int], outputs: tuple[int, int], size: Array
    ) -> Array:
        """The shadow of a set with convex rows beside those of a program."""
        tangents = partial(_broken, self._sample, curved)
        free = np.flatnonzero(program.lower < program.upper)
        if not set(free.tolist()) <= set(outputs):
            return shadow(program, outputs, size, tangents)
        inner = extremes(program, outputs, size, tangents)
        if not len(inner):
            return inner
        rows, place = self._evaluated.rows, list(outputs)

        def excess(points: torch.Tensor) -> torch.Tensor:
            z = torch.from_numpy(program.lower).repeat(len(points), 1)
            columns = torch.tensor(place).expand(len(points), 2)
            return rows.excess(z.scatter(1, columns, points))[:, curved]

        return within_curves(shadow(program, outputs, size), inner, excess, size)

    # ---- relaxations -----------------------------------------------------------------------

    def relaxed(
        self, relaxation: Relaxation, outputs: tuple[int, int], at: Mapping[int, float]
    ) -> Array:
        """The shadow of a relaxation's lifted set on two outputs, the others held at values.

        It is the same for every prediction: the distance may always be large enough.
        """
        if self.rules.data.curved:
            return self._relaxed_hulls(relaxation, outputs)
        program = self._program(relaxation)
        if program is None:
            return np.zeros((0, 2))
        place = dict(zip(program.which.tolist(), program.outputs.tolist(), strict=True))
        middle = np.where(np.isfinite(self.lower + self.upper), (self.lower + self.upper) / 2, 0.0)
        model = self._model(program, middle, {place[j]: (v, v) for j, v in at.items()})
        return shadow(model, (place[outputs[0]], place[outputs[1]]), self.size(outputs))

    def _relaxed_hulls(self, relaxation: Relaxation, outputs: tuple[int, int]) -> Array:
        """The same by its definition: of each cluster the hull of what its products leave."""
        if len(self._layouts.ready.rules.data.columns) > 2:
            refuse_curved(self.rules, "plot_region: the outline of a relaxation of such a model")
        plan = Plan.of(relaxation, self.rules)
        ready, chosen = self._layouts.ready.rules, self._chosen()
        clusters: Sequence[Sequence[int]] = [chosen]
        if plan is not None and chosen:
            applies = [self._applies[rule.clause] for rule in ready.data.rules]
            clusters = plan.active(ready, applies)
        hulls = [hull(self.union(outputs, {}, cluster)) for cluster in clusters]
        return reduce(common, sorted(hulls, key=len, reverse=True))

    def lifted(self, relaxation: Relaxation, yhat: float) -> Array:
        """The lifted set of a relaxation of one output: corners (y, eta).

        Args:
            relaxation: which one.
            yhat: the prediction, within the output's bounds.
        """
        self._refuse_lifted()
        program = self._program(relaxation)
        return np.zeros((0, 2)) if program is None else self._lifted(program, yhat, {})

    def lifted_terms(self, yhat: float) -> list[Array]:
        """The lifted disjuncts, one for each product of the DNF: the hull with that weight 1."""
        self._refuse_lifted()
        chosen = [self._chosen()] if self._chosen() else []
        number = self._layouts.number(chosen, np.array(self._applies), pruned=False)
        if self._layouts.contradictory[number]:
            return []
        program = self._written(number)
        weights = [w for w in program.weights if w >= 0]
        held: list[dict[int, tuple[float, float]]] = [{w: (1.0, 1.0)} for w in weights]
        found = [self._lifted(program, yhat, fixed) for fixed in held or [{}]]
        return [corners for corners in found if len(corners)]

    def _refuse_lifted(self) -> None:
        """Raise where one dimension more than the outputs does not show what is minimised."""
        refuse_curved(self.rules, "plot_lifted")
        refuse_priced(self.rules.data, "plot_lifted")

    def _lifted(
        self, program: RelaxationProgram, yhat: float, fixed: Mapping[int, tuple[float, float]]
    ) -> Array:
        model = self._model(program, np.array([yhat]), fixed)
        size = np.repeat(self.size((0, 0))[:1], 2)
        return shadow(model, (int(program.outputs[0]), int(program.distances[0])), size)

    def _program(self, relaxation: Relaxation) -> RelaxationProgram | None:
        """The linear program that `gdpnet.convexify` gives; None where nothing is left of it."""
        plan = Plan.of(relaxation, self.rules)
        number = self._layouts.planned(plan, np.array(self._applies), pruned=False)
        return None if self._layouts.contradictory[number] else self._written(number)

    def _written(self, number: int) -> RelaxationProgram:
        data = self._layouts.ready.rules.data
        return RelaxationProgram(data, complete(data, self._layouts.listed[number]))

    def _chosen(self) -> list[int]:
        """Active rules, those that whole numbers became included."""
        rules = self._layouts.ready.rules.data.rules
        return [r for r, rule in enumerate(rules) if self._applies[rule.clause]]

    @cached_property
    def _varying(self) -> Array:
        return self._evaluated.rows.coefficients.numpy()

    def _model(
        self, program: RelaxationProgram, start: Array, fixed: Mapping[int, tuple[float, float]]
    ) -> SparseLinearProgram:
        """A program with the numbers of this input and a prediction, some columns held."""
        parameters = program.parameters(self._sample.bound[None], self._varying, start[None])
        lower, upper = program.lower.copy(), program.upper.copy()
        for column, (low, high) in fixed.items():
            lower[column], upper[column] = low, high
        written = program.at(program.moving_values(parameters)[0])
        return replace(written, lower=lower, upper=upper)


def _broken(sample: RulesAtSample, rows: Sequence[int], z: Array) -> list[tuple[Array, float]]:
    return [(tangent.slope, tangent.bound) for tangent in broken_tangents(sample, rows, z)]
