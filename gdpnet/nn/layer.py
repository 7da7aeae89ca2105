"""ProjectionLayer: rules as the last layer of a network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, overload

import torch
from torch import nn

from gdpnet.errors import InputError
from gdpnet.model import RuleModel
from gdpnet.projection.library import CompiledProjection
from gdpnet.projection.projection import Projection, ProjectionInfo
from gdpnet.projection.projector import Projector
from gdpnet.relaxation.plan import Plan
from gdpnet.solve.base import Backend


class ProjectionLayer(nn.Module):
    """Moves predictions to the nearest outputs that satisfy the rules.

    It has no parameters; its `state_dict` holds the fingerprint of the rules, as a tensor. Any
    leading batch shape, type and device pass through; solving is done in float64 on the CPU. One
    layer may be called from several threads. The outputs may be written into.

    Args:
        rules: the rules.
        norm: as all keywords, see `gdpnet.project`; `"l1"` or `"l2"`.
        weights: of the outputs in the distance, `d`.
        relaxation: `"dnf"` (exact), `"cnf"`, `"adaptive"`, `"pdnf:K"`, `"plan:BUDGET"`, a `Plan`.
        solver: `"auto"`, a name, or an object of `gdpnet.solve`.
        gradient: `"auto"`, `"qp"`, `"vertex"`, `"straight_through"`, `"mixed:0.25"`, or an object
            of `gdpnet.derivative`; see `docs/gradients.md` for how to choose. What the solver
            cannot give is refused here, not in the first backward pass.
        forward: `"exact"`, or `"qp"` for study.
        strict: rules hold without tolerance.
        time_limit: seconds for each sample.
        deadline: seconds for a batch.
        threads: samples solved at a time.
        on_conflict: `"pass"`, `"raise"`, `"nearest"` or `"drop"`.
        on_invalid: `"raise"` or `"mark"`.

    Example:
        >>> import pyomo.environ as pyo, gdpnet, torch
        >>> m = pyo.ConcreteModel()
        >>> m.y = pyo.Var(bounds=(0, 10))
        >>> m.gap = gdpnet.rule(gdpnet.any_of(m.y <= 3, m.y >= 7))
        >>> layer = gdpnet.ProjectionLayer(gdpnet.RuleModel(m, outputs=[m.y]))
        >>> layer(torch.tensor([[4.5], [8.0]])).tolist()
        [[3.0], [8.0]]
        >>> network = torch.nn.Sequential(torch.nn.Linear(2, 1), layer)
        >>> network(torch.zeros(5, 2)).shape
        torch.Size([5, 1])
    """

    def __init__(
        self,
        rules: RuleModel,
        *,
        norm: str = "l1",
        weights: Any = None,
        relaxation: str | Plan = "dnf",
        solver: str | Backend = "auto",
        gradient: Any = "auto",
        forward: str = "exact",
        strict: bool = False,
        time_limit: float | None = None,
        deadline: float | None = None,
        threads: int | None = None,
        on_conflict: str = "pass",
        on_invalid: str = "raise",
    ) -> None:
        super().__init__()
        self._rules = rules
        self._projector = Projector(
            rules,
            norm=norm,
            weights=weights,
            relaxation=relaxation,
            solver=solver,
            gradient=gradient,
            forward=forward,
            strict=strict,
            time_limit=time_limit,
            deadline=deadline,
            threads=threads,
            on_conflict=on_conflict,
            on_invalid=on_invalid,
        )
        self._compiled = CompiledProjection(self._projector)

    @property
    def rules(self) -> RuleModel:
        """The rules."""
        return self._rules

    @overload
    def forward(
        self, yhat: torch.Tensor, x: torch.Tensor | None = None, *, return_info: Literal[True]
    ) -> tuple[torch.Tensor, ProjectionInfo]: ...

    @overload
    def forward(
        self,
        yhat: torch.Tensor,
        x: torch.Tensor | None = None,
        *,
        return_info: Literal[False] = False,
    ) -> torch.Tensor: ...

    def forward(
        self, yhat: torch.Tensor, x: torch.Tensor | None = None, *, return_info: bool = False
    ) -> torch.Tensor | tuple[torch.Tensor, ProjectionInfo]:
        """The nearest outputs.

        Args:
            yhat: predictions, `... x d`.
            x: inputs of the rules, `... x p`, or `p` for all samples; None where they have none.
            return_info: also return how it went: status, nodes, timing and so on.

        Returns:
            y, `... x d`, in the type and on the device of yhat; with `return_info` also the info.
        """
        if torch.compiler.is_compiling():
            # Solving is no matter for a compiler of tensor programs.
            if not return_info:
                return self._compiled(yhat, x)
            projection = torch.compiler.disable(self.project)(yhat, x)
        else:
            projection = self.project(yhat, x)
        return (projection.y, projection.info) if return_info else projection.y

    def project(self, yhat: torch.Tensor, x: torch.Tensor | None = None) -> Projection:
        """As `gdpnet.project` with this layer's keywords: y, distance, status, disjuncts.

        Args:
            yhat: predictions, `... x d`.
            x: inputs of the rules, `... x p`.
        """
        return self._projector(yhat, x)

    def extra_repr(self) -> str:
        """What stands in the parentheses of `repr`."""
        projector, count = self._projector, len(self.rules.names)
        parts = [
            f"{count} rule{'' if count == 1 else 's'}, d={self.rules.data.outputs}",
            f"relaxation={projector.relaxation!r}",
            f"solver={projector.backend!r}",
            f"gradient={projector.sensitivity!r}",
        ]
        return ", ".join(parts + [f"{key}={value!r}" for key, value in projector.unusual.items()])

    def get_extra_state(self) -> torch.Tensor:
        """What a checkpoint keeps of the layer: the fingerprint of its rules, bytes as uint8."""
        # Much code that keeps checkpoints, safetensors for one, takes nothing but tensors.
        return torch.tensor(list(bytes.fromhex(self.rules.fingerprint)), dtype=torch.uint8)

    def set_extra_state(self, state: Any) -> None:
        """Refuse a checkpoint of other rules."""
        found = _fingerprint(state)
        if found is not None and found != self.rules.fingerprint:
            raise InputError(
                f"This checkpoint was trained with other rules (fingerprint {found[:12]}..., here "
                f"{self.rules.fingerprint[:12]}...). Build the layer from the rules it was trained "
                "with, or delete the key that ends in '_extra_state' from the checkpoint."
            )

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        metadata: Any,
        strict: bool,
        missing: list[str],
        unexpected: list[str],
        errors: list[str],
    ) -> None:
        known: list[str] = []
        super()._load_from_state_dict(
            state_dict, prefix, metadata, strict, known, unexpected, errors
        )
        # A network that was trained without rules, or before they were added, may get them.
        missing += [key for key in known if not key.endswith("_extra_state")]


def _fingerprint(state: Any) -> str | None:
    """The fingerprint in an extra state; None where there is none to compare with."""
    if isinstance(state, torch.Tensor):
        # On the meta device there are no numbers; a cast of the whole checkpoint has kept them.
        return None if state.is_meta else bytes(map(int, state.flatten().tolist())).hex()
    if isinstance(state, Mapping):  # as checkpoints had it before it was a tensor
        return state.get("rules")
    return None
