"""Vectors of eight numbers in kernels: one instruction for eight samples.

A kernel over `Lanes` reads like one over numbers; it only has no branches that depend on them.
Numba's own loops over eight numbers stay scalar wherever two arrays might overlap.

Arrays of vectors have a last axis of length `LANES`, so that the numbers of one sample are
`array[..., lane]`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic, models, overload, register_model

from gdpnet.kernels._jit import inner

LANES = 8

_VECTOR = ir.VectorType(ir.DoubleType(), LANES)
_FUSED = ("contract",)  # a product and a sum may become one instruction


class _LanesType(types.Type):
    def __init__(self) -> None:
        super().__init__(name="Lanes")


_LANES = _LanesType()


@register_model(_LanesType)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _VECTOR)


def _address(context: Any, builder: Any, kind: Any, array: Any, place: Any) -> Any:
    start = context.make_array(kind)(context, builder, array).data
    first = builder.mul(place, ir.Constant(place.type, LANES))
    return builder.bitcast(builder.gep(start, [first]), _VECTOR.as_pointer())


def _load(typing, array, place):
    def generate(context, builder, signature, arguments):
        address = _address(context, builder, signature.args[0], *arguments)
        return builder.load(address, align=8)

    return _LANES(array, types.intp), generate


def _store(typing, array, place, value):
    def generate(context, builder, signature, arguments):
        address = _address(context, builder, signature.args[0], *arguments[:2])
        builder.store(arguments[2], address, align=8)
        return context.get_dummy_value()

    return types.void(array, types.intp, _LANES), generate


_load_lanes: Any = intrinsic(_load)
_store_lanes: Any = intrinsic(_store)


@inner
def at(array, i):
    """The vector at a place of an array of two axes."""
    return _load_lanes(array, i)


@inner
def at2(array, i, k):
    """The vector at a place of an array of three axes."""
    return _load_lanes(array, i * array.shape[1] + k)


@inner
def put(array, i, value):
    """Writes a vector into an array of two axes."""
    _store_lanes(array, i, value)


@inner
def put2(array, i, k, value):
    """Writes a vector into an array of three axes."""
    _store_lanes(array, i * array.shape[1] + k, value)


def _spread(builder: Any, kind: Any, value: Any) -> Any:
    """A number as a vector; a vector as it is."""
    if isinstance(kind, _LanesType):
        return value
    nothing = ir.Constant(_VECTOR, ir.Undefined)
    index = ir.IntType(32)
    one = builder.insert_element(nothing, value, ir.Constant(index, 0))
    lanes = ir.Constant(ir.VectorType(index, LANES), [0] * LANES)
    return builder.shuffle_vector(one, nothing, lanes)


def _operation(count: int, build: Callable[..., Any]) -> Any:
    """An intrinsic over so many vectors or numbers."""

    def type_and_code(arguments: tuple[Any, ...]) -> Any:
        kinds = [k if isinstance(k, _LanesType) else types.float64 for k in arguments]

        def generate(context, builder, signature, values):
            spread = [_spread(builder, k, v) for k, v in zip(signature.args, values, strict=True)]
            return build(builder, *spread)

        return _LANES(*kinds), generate

    if count == 1:
        return intrinsic(lambda typing, a: type_and_code((a,)))
    if count == 2:
        return intrinsic(lambda typing, a, b: type_and_code((a, b)))
    return intrinsic(lambda typing, a, b, c, d: type_and_code((a, b, c, d)))


every = _operation(1, lambda builder, a: a)  # a number in all lanes

# `where_less(a, b, yes, no)`; a comparison with NaN is false.
where_less = _operation(
    4, lambda builder, a, b, yes, no: builder.select(builder.fcmp_ordered("<", a, b), yes, no)
)


@inner
def least(a, b):
    """The smaller of two, in every lane; the first if the second is NaN."""
    return where_less(b, a, b, a)


@inner
def most(a, b):
    """The larger of two, in every lane; the first if the second is NaN."""
    return where_less(a, b, b, a)


def _overload(instruction: str, *names: Callable[..., Any]) -> None:
    operation = _operation(
        2, lambda builder, a, b: getattr(builder, instruction)(a, b, flags=_FUSED)
    )

    def over_lanes(a, b):
        if isinstance(a, _LanesType) or isinstance(b, _LanesType):
            return lambda a, b: operation(a, b)
        return None

    for name in names:
        overload(name, jit_options={"forceinline": True})(over_lanes)


_overload("fadd", operator.add, operator.iadd)
_overload("fsub", operator.sub, operator.isub)
_overload("fmul", operator.mul)
_overload("fdiv", operator.truediv)
