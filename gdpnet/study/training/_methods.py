"""Methods: what is minimised, from which start, and what is done to the outputs."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import nn

from gdpnet.checks import check_choice
from gdpnet.derivative import QP, sensitivity_of
from gdpnet.errors import InputError
from gdpnet.model import RuleModel
from gdpnet.nn.layer import ProjectionLayer
from gdpnet.plan.planner import choose
from gdpnet.relaxation.plan import Plan
from gdpnet.study.training._order import planned_order

LOSSES = ("plain", "penalty", "projected")

# Products that the planner may spend on a partial DNF; at its own default, 64, all rules of a small
# model fit and the plan is the DNF.
_BUDGET = 4


@dataclass(frozen=True)
class Method:
    """One way to train a network and to use it.

    Attributes:
        name: of the method.
        loss: what is minimised: `"plain"`, the loss of the network's own outputs; `"penalty"`, that
            plus the penalty for broken rules; `"projected"`, the loss of the projected outputs.
        finetuned: whether it starts from the network that was trained with the plain loss.
        projection: keywords of `gdpnet.ProjectionLayer` for what is given out; None where the
            network's own outputs are. `relaxation` may be a function of the rules and of
            inputs that returns a `Plan`. Where no `gradient` or `norm` is named, the study's is
            used.
        network: makes a network of the method's own, which is not trained; None: the task's.

    Example:
        >>> least_norm = {"relaxation": "dnf", "tie": "least_norm"}
        >>> Method("dnf-least-norm", projection=least_norm).loss
        'projected'
    """

    name: str
    loss: str = "projected"
    finetuned: bool = True
    projection: Mapping[str, Any] | None = field(default=None, hash=False)
    network: Callable[[], nn.Module] | None = None

    def __post_init__(self) -> None:
        check_choice("Method: loss", self.loss, LOSSES)
        if self.loss == "projected" and self.projection is None and self.network is None:
            raise InputError(
                f"Method {self.name!r}: loss='projected' needs projection, the keywords of "
                "gdpnet.ProjectionLayer."
            )

    def layer(
        self,
        rules: RuleModel,
        x: torch.Tensor | None,
        gradient: Any = None,
        norm: str = "l1",
    ) -> ProjectionLayer | None:
        """The projection of the outputs, or None.

        Args:
            rules: the rules.
            x: inputs that a plan is made for, `batch x p`.
            gradient: how gradients pass where the method names none; the paper's if None.
            norm: of the distance where the method names none.
        """
        if self.projection is None:
            return None
        keywords: dict[str, Any] = {
            "gradient": QP(1e-2) if gradient is None else gradient,
            "threads": 1,
            "norm": norm,
        }
        keywords |= self.projection
        if keywords.get("forward") == "qp" and not isinstance(keywords["gradient"], QP):
            keywords["gradient"] = QP(1e-2)  # the point itself is defined by it
        if callable(keywords.get("relaxation")):
            keywords["relaxation"] = keywords["relaxation"](rules, x)
        return ProjectionLayer(rules, **keywords)


def _first(rules: RuleModel, x: torch.Tensor, number: int) -> Plan:
    return Plan.lexicographic(rules, number)


def _planned(rules: RuleModel, x: torch.Tensor, number: int) -> Plan:
    return choose(rules, budget=number, x=x)


def _stepped(rules: RuleModel, x: torch.Tensor, number: int) -> Plan:
    if number >= max(1, len(rules.names)):
        raise InputError(
            f"steps:{number}: {len(rules.names)} rules are merged by at most "
            f"{max(1, len(rules.names)) - 1} basic steps."
        )
    return planned_order(rules, x)[number]


METHODS = {
    method.name: method
    for method in (
        Method("base", "plain", finetuned=False),
        Method("finetuned-base", "plain"),
        Method("penalty", "penalty", finetuned=False),
        Method("finetuned-penalty", "penalty"),
        Method("inference", "plain", finetuned=False, projection={"relaxation": "dnf"}),
        Method("finetuned-inference", "plain", projection={"relaxation": "dnf"}),
        Method("cnf", projection={"relaxation": "cnf"}),
        Method("pdnf", projection={"relaxation": partial(_planned, number=_BUDGET)}),
        Method("dnf", projection={"relaxation": "dnf"}),
        Method("cnf-relaxed", projection={"relaxation": "cnf", "forward": "qp"}),
        Method("dnf-relaxed", projection={"relaxation": "dnf", "forward": "qp"}),
        Method("dnf-auto", projection={"relaxation": "dnf", "gradient": "auto"}),
        Method(
            "straight-through", projection={"relaxation": "dnf", "gradient": "straight_through"}
        ),
        Method("cnf-mixed", projection={"relaxation": "cnf", "gradient": "mixed:0.25"}),
        Method("dnf-mixed", projection={"relaxation": "dnf", "gradient": "mixed:0.25"}),
    )
}
"""The methods by name.

The paper's are base, penalty, finetuned-penalty, cnf, dnf and their relaxed counterparts, whose
output is the regularised point; `pdnf` merges what the planner chooses. On top come what a fair
reader asks for: `inference`, the base projected only when it is used; `finetuned-base` and
`finetuned-inference`, the same after as many more steps as projections are trained for; `dnf-auto`
and `straight-through`, the DNF with other gradients; `cnf-mixed` and `dnf-mixed`, with the mixture
of which the paper's source speaks. For those with a number see `method_named`.
"""

ABOUT = {
    "base": "the network alone, trained on its loss",
    "finetuned-base": "the same, trained on for as long as projections are; where a protocol gives "
    "all methods both stages it is the base",
    "penalty": "trained on its loss plus a penalty for broken rules; nothing is projected",
    "finetuned-penalty": "the base, trained on with that penalty",
    "inference": "the base, its outputs projected (DNF) only when it is used",
    "finetuned-inference": "finetuned-base, projected only when it is used",
    "cnf": "the base, trained on through the projection onto the CNF, with the study's gradient",
    "pdnf": "the same onto a partial DNF: what the planner merges within 4 products",
    "dnf": "the same onto the DNF, whose outputs satisfy all rules",
    "cnf-relaxed": "as cnf, giving out the regularised program's point, which is no vertex",
    "dnf-relaxed": "as dnf, giving out the regularised program's point, which may break rules",
    "dnf-auto": "as dnf, with gdpnet's default gradient",
    "straight-through": "as dnf, the gradient passes as if nothing had been projected",
    "cnf-mixed": "as cnf, with a quarter of the KKT gradient and the rest straight through",
    "dnf-mixed": "as dnf, with a quarter of the KKT gradient and the rest straight through",
}
"""What each method is, in a line."""

_NUMBERED = {"pdnf": _first, "plan": _planned, "steps": _stepped}


def method_named(name: str, more: Mapping[str, Method] | None = None) -> Method:
    """A method by name.

    Args:
        name: one of `METHODS`; `pdnf:k`, the first k rules merged in declaration order;
            `plan:b`, what the planner merges within a budget of b products (`pdnf` is `plan:4`);
            `steps:s`, s basic steps, each where it tightens most; `cnf-mixed:a` and
            `dnf-mixed:a`, the gradient `mixed:a`.
        more: methods of the task itself.

    Example:
        >>> method_named("pdnf:3").loss
        'projected'
    """
    known = {**METHODS, **(more or {})}
    if name in known:
        return known[name]
    numbered = re.fullmatch(r"(pdnf|plan|steps):(\d+)", name)
    if numbered:
        merged = partial(_NUMBERED[numbered[1]], number=int(numbered[2]))
        return Method(name, projection={"relaxation": merged})
    mixed = re.fullmatch(r"(cnf|dnf)-(mixed:.+)", name)
    if mixed:
        sensitivity_of(mixed[2], f"method {name!r}")
        return Method(name, projection={"relaxation": mixed[1], "gradient": mixed[2]})
    raise InputError(
        f"There is no method {name!r}; known are {', '.join(known)}, pdnf:k (the first k rules "
        "merged), plan:b (the planner's choice within b products), steps:s (s basic steps), "
        "cnf-mixed:a and dnf-mixed:a (a share a of the KKT gradient)."
    )
