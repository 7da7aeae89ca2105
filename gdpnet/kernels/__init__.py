"""The border to the compiled kernels: arrays in, arrays out.

Other rooms take from here what they need, and nothing from the modules within. Nothing in this room
knows of rules. A name is loaded when it is first asked for: that needs numba, this module does not.

| module | what is in it |
|---|---|
| `exact/_dictionary`, `_simplex` | the linear program at a node: a dual simplex over the columns |
| `exact/_arrays`, `_clauses`, `_stack`, `_search` | branching on broken clauses |
| `exact/_kernel` | the loop over samples |
| `exact/_least_norm`, `_quadratic` | the quadratic programs of `qp/_pieces` |
| `extended/_tables`, `_program` | the program of a part as sparse rows, written for one sample |
| `extended/_kernel`, `_jacobian` | the loop over samples; derivatives from the final basis |
| `qp/_band`, `_forward`, `_pieces`, `_backward` | the regularised program of the DNF |
| `qp/_blocks`, `_newton` | of CNF and partial DNF: an interior-point method, its derivative |
| `qp/_lanes` | vectors, so that these advance eight samples at a time |
| `_jit`, `_block` | how kernels are compiled; many arrays handed over as one |
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

_NAMES = {
    "_jit": "Array",
    "_block": "Block",
    "exact._kernel": "new_workspace",
    "extended._jacobian": "vjp_extended",
    "extended._kernel": "NO_BLOCK Basis ExtendedOutput run_extended",
    "extended._program": "ExtendedWorkspace new_extended_workspace",
    "extended._tables": "Extent Sources Tables",
    "qp._backward": "new_adjoint vjp_band",
    "qp._band": (
        "FAILED PASSED PIECES VERTICES Band Choices enlarged list_band new_band new_scratch"
    ),
    "qp._blocks": "Path new_path solve_blocks vjp_blocks",
    "qp._forward": "mix",
    "qp._newton": "Newton Shape new_newton",
    "qp._pieces": "new_pieces settle_pieces",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}

if TYPE_CHECKING:
    from gdpnet.kernels._block import Block as Block
    from gdpnet.kernels._jit import Array as Array
    from gdpnet.kernels.exact._kernel import new_workspace as new_workspace
    from gdpnet.kernels.extended._jacobian import vjp_extended as vjp_extended
    from gdpnet.kernels.extended._kernel import NO_BLOCK as NO_BLOCK
    from gdpnet.kernels.extended._kernel import Basis as Basis
    from gdpnet.kernels.extended._kernel import ExtendedOutput as ExtendedOutput
    from gdpnet.kernels.extended._kernel import run_extended as run_extended
    from gdpnet.kernels.extended._program import ExtendedWorkspace as ExtendedWorkspace
    from gdpnet.kernels.extended._program import new_extended_workspace as new_extended_workspace
    from gdpnet.kernels.extended._tables import Extent as Extent
    from gdpnet.kernels.extended._tables import Sources as Sources
    from gdpnet.kernels.extended._tables import Tables as Tables
    from gdpnet.kernels.qp._backward import new_adjoint as new_adjoint
    from gdpnet.kernels.qp._backward import vjp_band as vjp_band
    from gdpnet.kernels.qp._band import FAILED as FAILED
    from gdpnet.kernels.qp._band import PASSED as PASSED
    from gdpnet.kernels.qp._band import PIECES as PIECES
    from gdpnet.kernels.qp._band import VERTICES as VERTICES
    from gdpnet.kernels.qp._band import Band as Band
    from gdpnet.kernels.qp._band import Choices as Choices
    from gdpnet.kernels.qp._band import enlarged as enlarged
    from gdpnet.kernels.qp._band import list_band as list_band
    from gdpnet.kernels.qp._band import new_band as new_band
    from gdpnet.kernels.qp._band import new_scratch as new_scratch
    from gdpnet.kernels.qp._blocks import Path as Path
    from gdpnet.kernels.qp._blocks import new_path as new_path
    from gdpnet.kernels.qp._blocks import solve_blocks as solve_blocks
    from gdpnet.kernels.qp._blocks import vjp_blocks as vjp_blocks
    from gdpnet.kernels.qp._forward import mix as mix
    from gdpnet.kernels.qp._newton import Newton as Newton
    from gdpnet.kernels.qp._newton import Shape as Shape
    from gdpnet.kernels.qp._newton import new_newton as new_newton
    from gdpnet.kernels.qp._pieces import new_pieces as new_pieces
    from gdpnet.kernels.qp._pieces import settle_pieces as settle_pieces
else:

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
