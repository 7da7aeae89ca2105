"""The border to the compiled kernels: arrays in, arrays out.

Other rooms take from here what they need, and nothing from the modules within. Nothing in this room
knows of rules. A name is loaded when it is first asked for: that needs numba, this module does not.

| module | what is in it |
|---|---|
| `exact/_dictionary`, `_simplex` | the linear program at a node: a dual simplex over the columns |
| `exact/_arrays`, `_clauses`, `_stack`, `_search` | branching on broken clauses |
| `exact/_kernel` | the loop over samples |
| `exact/_least_norm`, `_quadratic` | of all nearest points the one of least norm |
| `exact/_jacobian`, `_face` | derivatives of vertices and of least-norm points |
| `extended/_tables`, `_program` | the program of a part as sparse rows, written for one sample |
| `extended/_kernel`, `_jacobian` | the loop over samples; derivatives from the final basis |
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
    "exact._face": "vjp_face",
    "exact._least_norm": "DONE LIMITED least_norm",
    "extended._jacobian": "vjp_extended",
    "extended._kernel": "NO_BLOCK Basis ExtendedOutput run_extended",
    "extended._program": "ExtendedWorkspace new_extended_workspace",
    "extended._tables": "Extent Sources Tables",
    "qp._blocks": "Path new_path solve_blocks vjp_blocks",
    "qp._newton": "Newton Shape new_newton",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}

if TYPE_CHECKING:
    from gdpnet.kernels._block import Block as Block
    from gdpnet.kernels._jit import Array as Array
    from gdpnet.kernels.exact._face import vjp_face as vjp_face
    from gdpnet.kernels.exact._least_norm import DONE as DONE
    from gdpnet.kernels.exact._least_norm import LIMITED as LIMITED
    from gdpnet.kernels.exact._least_norm import least_norm as least_norm
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
    from gdpnet.kernels.qp._blocks import Path as Path
    from gdpnet.kernels.qp._blocks import new_path as new_path
    from gdpnet.kernels.qp._blocks import solve_blocks as solve_blocks
    from gdpnet.kernels.qp._blocks import vjp_blocks as vjp_blocks
    from gdpnet.kernels.qp._newton import Newton as Newton
    from gdpnet.kernels.qp._newton import Shape as Shape
    from gdpnet.kernels.qp._newton import new_newton as new_newton
else:

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
