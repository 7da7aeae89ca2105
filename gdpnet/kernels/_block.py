"""Nested named tuples of arrays handed to a kernel as one array of addresses.

A kernel looks at some seventy arrays that never change between calls. Taking each of them out of
its Python object takes longer than projecting a prediction; so they are described once, by their
addresses and shapes, and the kernel rebuilds them from that in a few instructions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import typeof, types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array

from gdpnet.kernels._jit import Array


class Block:
    """A tree of arrays and numbers, and where they are.

    Args:
        tree: nested named tuples of contiguous arrays, whole numbers and truth values. It is kept
            alive; its arrays stay where they are.
        kind: numba's type of it, which a kernel was compiled for.

    Attributes:
        tree: the tree.
        words: addresses, shapes and numbers in order, int64.
    """

    def __init__(self, tree: Any, kind: types.Type) -> None:
        if typeof(tree) != kind:  # the kernel would read memory as what it is not
            raise TypeError(f"expected arrays of type {kind}, got {typeof(tree)}")
        self.tree = tree
        self.words: Array = np.array(_words(tree), dtype=np.int64)


def _words(tree: Any) -> list[int]:
    if isinstance(tree, tuple):
        return [word for part in tree for word in _words(part)]
    if isinstance(tree, np.ndarray):
        return [tree.ctypes.data, *tree.shape]
    return [int(tree)]


def _unpack(typing_context: Any, words: Any, kind: Any) -> Any:
    """The tree of a `Block`, inside a kernel: `unpack(block.words, kind)`."""
    tree = kind.instance_type

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = make_array(signature.args[0])(context, builder, arguments[0]).data
        place = 0

        def word() -> Any:
            nonlocal place
            place += 1
            at = context.get_constant(types.intp, place - 1)
            return builder.load(builder.gep(data, [at]))

        def rebuild(part: Any) -> Any:
            if isinstance(part, types.NamedTuple):
                return context.make_tuple(builder, part, [rebuild(p) for p in part.types])
            if not isinstance(part, types.Array):
                return context.cast(builder, word(), types.int64, part)
            item = context.get_data_type(part.dtype)
            pointer = builder.inttoptr(word(), item.as_pointer())
            shape = [word() for _ in range(part.ndim)]
            size = step = context.get_constant(types.intp, context.get_abi_sizeof(item))
            strides: list[Any] = []
            for extent in reversed(shape):
                strides.insert(0, step)
                step = builder.mul(step, extent)
            array = make_array(part)(context, builder)
            populate_array(array, pointer, shape, strides, size, meminfo=None)
            return array._getvalue()

        return rebuild(tree)

    return tree(words, kind), generate


unpack: Any = intrinsic(_unpack)
