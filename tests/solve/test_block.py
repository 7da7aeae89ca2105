"""Arrays handed to a kernel by their addresses."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from numba import njit, typeof

from gdpnet.kernels._block import Block, unpack


class Leaf(NamedTuple):
    number: int
    flag: bool
    values: np.ndarray


class Branch(NamedTuple):
    leaf: Leaf
    table: np.ndarray
    bits: np.ndarray


def branch(size: int) -> Branch:
    leaf = Leaf(size, size % 2 == 0, np.arange(float(size)))
    return Branch(leaf, np.arange(2 * size).reshape(2, size), np.ones(size, dtype=np.bool_))


KIND = typeof(branch(3))


@njit
def summed(words, to):
    tree = unpack(words, KIND)
    to[0] = tree.leaf.number
    to[1] = 1.0 if tree.leaf.flag else 0.0
    for j in range(tree.leaf.values.size):
        to[2] += tree.leaf.values[j]
    for i in range(tree.table.shape[0]):
        for j in range(tree.table.shape[1]):
            to[3] += (i + 1) * tree.table[i, j]
            tree.table[i, j] = -1
    for bit in tree.bits:
        to[4] += bit


@pytest.mark.parametrize("size", [0, 1, 3, 4])
def test_a_kernel_sees_the_arrays_and_writes_into_them(size: int) -> None:
    tree = branch(size)
    first, second = tree.table.copy()
    block, found = Block(tree, KIND), np.zeros(5)
    summed(block.words, found)
    expected = [size, size % 2 == 0, sum(range(size)), first.sum() + 2 * second.sum(), size]
    assert found.tolist() == expected
    assert (tree.table == -1).all()


@pytest.mark.parametrize(
    "tree",
    [
        branch(3)._replace(bits=np.ones(3)),
        branch(3)._replace(table=np.zeros((3, 2), dtype=np.int64).T),
        branch(3)._replace(table=np.zeros(6, dtype=np.int64)),
        branch(3).leaf,
    ],
)
def test_other_types_than_the_kernel_was_compiled_for_are_refused(tree: object) -> None:
    with pytest.raises(TypeError, match="expected arrays of type"):
        Block(tree, KIND)
