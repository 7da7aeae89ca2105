"""`gdpnet.lift_projection`: the distance to a prediction, written into every disjunct."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from typing import Any

import pyomo.environ as pyo
from pyomo.common.config import ConfigDict, ConfigValue, In, document_class_CONFIG
from pyomo.core.base.transformation import Transformation
from pyomo.core.base.var import VarData
from pyomo.core.util import target_list

from gdpnet.errors import InputError, RuleError
from gdpnet.relaxation.pyomo import components, prices, walk
from gdpnet.relaxation.pyomo.provenance import get_copies, get_src_constraint, note_copy
from gdpnet.rules.functions import maximum, minimum

logger = logging.getLogger("gdpnet")

NORMS = ("l1", "l2")
"""Norms of the distance."""

_ADDED = ("gdpnet_y", "gdpnet_yhat", "gdpnet_eta", "gdpnet_epigraph", "gdpnet_distance")


@document_class_CONFIG()
class LiftProjection(Transformation):
    """Weighted distance to a prediction, with its epigraph inside every disjunct.

    Minimises `sum(w_j * |y_j - yhat_j|)`, or with `norm="l2"` `sum((w_j * (y_j - yhat_j))**2)`. The
    rows of the epigraph, and the constraints that hold
    always, are copied into every disjunct of every active Disjunction that they concern, and their
    originals deactivated: only so is the hull of the disjuncts the hull of the projection. A
    Disjunction gets what hangs together with its own variables; outputs and constraints that hang
    together with no Disjunction stay outside, as plain rows.

    Prices of disjuncts (the Suffix `rule_price`) are minimised with the distance, each times the
    binary of its disjunct. A Disjunction with a price gets one more disjunct, which holds nothing
    but what every disjunct does, and costs it.

    It adds to the model:
        gdpnet_y: References to the outputs, in order.
        gdpnet_yhat: the prediction, mutable Params. Set them to anything, any time.
        gdpnet_eta: Vars, the distance in each output; with `norm="l2"` its square.
        gdpnet_distance: the Objective, with prices where there are any.

    The bounds of eta come from the box of the outputs. They are valid because rows see the
    prediction clipped to that box; what clipping takes away is a constant of the objective. With
    `clip=False` the rows hold `gdpnet_yhat` itself, and clipping is left to the caller: with a
    prediction outside the box the model is then wrong. With `norm="l2"` nothing is clipped, and eta
    has no upper bound: `gdpnet.hull` needs none, since nothing but the objective holds it down.

    Example:
        >>> import pyomo.environ as pyo
        >>> from pyomo.gdp import Disjunction
        >>> import gdpnet
        >>> m = pyo.ConcreteModel()
        >>> m.y = pyo.Var(bounds=(0, 10))
        >>> m.gap = Disjunction(expr=[[m.y <= 3], [m.y >= 7]])
        >>> lift = pyo.TransformationFactory("gdpnet.lift_projection")
        >>> lift.apply_to(m, outputs=[m.y], yhat=[4.5])
        >>> pyo.TransformationFactory("gdpnet.hull").apply_to(m)
        >>> _ = pyo.TransformationFactory("core.relax_integer_vars").apply_to(m)
        >>> _ = pyo.SolverFactory("appsi_highs").solve(m)
        >>> round(m.y.value, 6), round(pyo.value(m.gdpnet_distance), 6)
        (3.0, 1.5)
    """

    CONFIG = ConfigDict("gdpnet.lift_projection")
    CONFIG.declare(
        "targets",
        ConfigValue(
            default=None,
            domain=target_list,
            description="Disjunctions or Blocks to lift; default: the instance",
            doc="""
            Disjunctions, or Blocks that hold them. If given, the originals of what is copied stay
            active, since other Disjunctions may rely on them.""",
        ),
    )
    CONFIG.declare(
        "outputs", ConfigValue(default=None, description="Vars, or IndexedVars, in order")
    )
    CONFIG.declare(
        "weights",
        ConfigValue(default=None, description="positive weight of each output; default: 1"),
    )
    CONFIG.declare(
        "yhat",
        ConfigValue(default=None, description="first values of the prediction; default: 0"),
    )
    CONFIG.declare(
        "norm",
        ConfigValue(default="l1", domain=In(NORMS), description="of the distance: 'l1' or 'l2'"),
    )
    CONFIG.declare(
        "clip",
        ConfigValue(
            default=True,
            domain=bool,
            description="whether rows clip the prediction to the outputs' bounds",
        ),
    )

    def _apply_to(self, instance: Any, **kwds: Any) -> None:
        config = self.CONFIG(kwds.pop("options", {}))
        config.set_value(kwds)
        outputs = _outputs(config.outputs, instance)
        weights = _numbers(config.weights, len(outputs), 1.0, "weights")
        if any(w <= 0.0 for w in weights):
            raise InputError(f"weights: expected positive numbers, got {weights}.")
        yhat = _numbers(config.yhat, len(outputs), 0.0, "yhat")
        for name in _ADDED:
            if instance.component(name) is not None:
                raise RuleError(
                    f"'{instance.name}' has a component '{name}' already. A model is lifted once."
                )
        disjunctions = walk.disjunctions_of(config.targets, instance, "targets")
        constraints = walk.constraints(instance)
        prices.note(instance.model(), disjunctions)

        instance.gdpnet_y = pyo.Reference(dict(enumerate(outputs)))
        instance.gdpnet_yhat = pyo.Param(
            range(len(outputs)), mutable=True, initialize=dict(enumerate(yhat)), domain=pyo.Reals
        )
        instance.gdpnet_eta = pyo.Var(range(len(outputs)), domain=pyo.NonNegativeReals)
        square = config.norm == "l2"
        seen, lost = _prediction(instance, outputs, config.clip and not square)
        for j, output in enumerate([] if square else outputs):
            if output.lower is not None and output.upper is not None:
                instance.gdpnet_eta[j].setub(output.upper - output.lower)
        paid = list(prices.paid(disjunctions))
        _add_objective(instance, [w * w for w in weights] if square else weights, lost, paid)

        pairs = [(y, seen[j], instance.gdpnet_eta[j]) for j, y in enumerate(outputs)]
        self._write = _write_squares if square else _write_epigraph
        self._distribute(instance, disjunctions, constraints, pairs, config.targets is None)

    def _distribute(
        self,
        instance: Any,
        disjunctions: list[Any],
        constraints: list[Any],
        pairs: list[tuple[Any, Any, Any]],
        whole: bool,
    ) -> None:
        """Copy epigraph and constraints to the Disjunctions they hang together with."""
        # Rows on weights of disjuncts speak about all disjuncts at once: they stay outside.
        movable = [
            c
            for c in constraints
            if not any(map(components.is_active_indicator, components.variables_of(c)))
        ]
        groups = components.joined(disjunctions, movable)
        rows: dict[Any, list[Any]] = {}
        for constraint in movable:
            variables = components.variables_of(constraint)
            if variables:
                rows.setdefault(groups.find(id(variables[0])), []).append(constraint)
        epigraph: dict[Any, list[tuple[int, Any, Any, Any]]] = {}
        for j, (y, seen, eta) in enumerate(pairs):
            epigraph.setdefault(groups.find(id(y)), []).append((j, y, seen, eta))

        lifted = set()
        for disjunction in walk.tree(disjunctions):
            # A nested Disjunction hangs together with what its parent does.
            group = groups.find(id(_root(disjunction)))
            lifted.add(group)
            for disjunct in disjunction.disjuncts:
                if disjunct.active:
                    self._write(disjunct, epigraph.get(group, []))
                    _copy_rows(disjunct, rows.get(group, []))
        plain = [pair for group, found in epigraph.items() if group not in lifted for pair in found]
        self._write(instance, plain)
        if whole:
            for group in lifted:
                for constraint in rows.get(group, ()):
                    constraint.deactivate()

    @staticmethod
    def get_src_constraint(row: Any) -> Any:
        """The constraint that a row of a disjunct was copied from."""
        return get_src_constraint(row)

    @staticmethod
    def get_copies(constraint: Any) -> tuple[Any, ...]:
        """The copies that were put into disjuncts of a constraint that holds always."""
        return get_copies(constraint)


def _outputs(given: Any, instance: Any) -> list[VarData]:
    if given is None:
        raise RuleError("outputs: expected the Vars whose distance is measured, got none.")
    listed = [given] if hasattr(given, "ctype") else list(given)
    outputs: list[VarData] = []
    for item in listed:
        if getattr(item, "ctype", None) is not pyo.Var:
            raise RuleError(f"outputs: expected a Var, got {item!r}.")
        outputs += list(item.values()) if item.is_indexed() else [item]
    if not outputs:
        raise RuleError("outputs: expected at least one Var, got none.")
    if len({id(output) for output in outputs}) < len(outputs):
        raise RuleError("outputs: a Var is listed twice.")
    for output in outputs:
        if output.model() is not instance.model():
            raise RuleError(f"outputs: Var '{output.name}' does not belong to the model.")
    return outputs


def _numbers(given: Sequence[float] | None, count: int, default: float, what: str) -> list[float]:
    if given is None:
        return [default] * count
    try:
        numbers = [float(number) for number in given]
    except (TypeError, ValueError):
        raise InputError(f"{what}: expected {count} numbers, got {given!r}.") from None
    if len(numbers) != count or not all(map(math.isfinite, numbers)):
        raise InputError(f"{what}: expected {count} finite numbers, got {given!r}.")
    return numbers


def _prediction(instance: Any, outputs: list[VarData], clip: bool) -> tuple[list[Any], list[Any]]:
    """The prediction as rows see it, and how far that is from the prediction itself."""
    raw = list(instance.gdpnet_yhat.values())
    if not clip:
        return raw, [0.0] * len(raw)
    seen = []
    for output, value in zip(outputs, raw, strict=True):
        inside = value if output.lower is None else maximum(output.lower, value)
        seen.append(inside if output.upper is None else minimum(output.upper, inside))
    return seen, [abs(value - inside) for value, inside in zip(raw, seen, strict=True)]


def _add_objective(instance: Any, weights: list[float], lost: list[Any], paid: list[Any]) -> None:
    for objective in instance.component_data_objects(pyo.Objective, active=True):
        logger.info("Objective '%s' is deactivated: the distance to the prediction is minimised.",
                    objective.name)  # fmt: skip
        objective.deactivate()
    terms = zip(weights, instance.gdpnet_eta.values(), lost, strict=True)
    instance.gdpnet_distance = pyo.Objective(
        expr=pyo.quicksum([*(w * eta + w * away for w, eta, away in terms), *paid])
    )


def _root(disjunction: Any) -> Any:
    """The top-level Disjunction that a nested one belongs to."""
    parent = walk.enclosing_disjunct(disjunction)
    if parent is None:
        return disjunction
    for candidate in walk.everywhere(parent.model(), disjunction.ctype):
        if any(d is parent for d in candidate.disjuncts):
            return _root(candidate)
    raise RuleError(f"Disjunct '{parent.name}' stands in no active Disjunction.")


def _write_epigraph(block: Any, entries: list[tuple[int, Any, Any, Any]]) -> None:
    if not entries:
        return
    rows = block.gdpnet_epigraph = pyo.Constraint(pyo.Any)
    for j, y, seen, eta in entries:
        rows[j, "above"] = y - seen <= eta
        rows[j, "below"] = seen - y <= eta


def _write_squares(block: Any, entries: list[tuple[int, Any, Any, Any]]) -> None:
    if not entries:
        return
    rows = block.gdpnet_epigraph = pyo.Constraint(pyo.Any)
    for j, y, seen, eta in entries:
        rows[j] = (y - seen) ** 2 <= eta


def _copy_rows(disjunct: Any, constraints: list[Any]) -> None:
    if not constraints:
        return
    rows = disjunct.gdpnet_always = pyo.Constraint(pyo.Any)
    for constraint in constraints:
        rows[constraint.name] = constraint.expr
        note_copy(rows[constraint.name], constraint)
