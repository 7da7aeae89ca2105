"""ONNX: a network with its rules in one file, and a session that runs it.

The projection is a node `gdpnet::Project` of the graph, with the rules as an initialiser and how to
project as an attribute. ONNX Runtime takes operators of others from compiled libraries only, so the
session takes the graph apart at these nodes: what lies between them runs in ONNX Runtime, they run
in gdpnet, which needs no Pyomo for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from typing import Any

import numpy as np
import torch

from gdpnet.errors import InputError
from gdpnet.extras import need
from gdpnet.projection.recipe import projector_of

DOMAIN, NAME = "gdpnet", "Project"


def export(
    model: torch.nn.Module, arguments: tuple[Any, ...], path: str | PathLike[str], **keywords: Any
) -> None:
    """Write a network with `ProjectionLayer`s to a file of ONNX.

    Args:
        model: the network.
        arguments: what it is called with, as an example.
        path: of the file.
        keywords: of `torch.onnx.export`, such as `dynamic_shapes`.

    Example:
        >>> import gdpnet.nn.onnx
        >>> gdpnet.nn.onnx.export.__name__  # needs gdpnet[onnx]
        'export'
    """
    for package in ("onnx", "onnxscript"):
        need(package, "onnx", "gdpnet.nn.onnx.export needs")
    import onnxscript

    operator = onnxscript.values.Op(onnxscript.values.Opset(DOMAIN, 1), NAME, _schema())

    def project(yhat: Any, x: Any, rules: Any, recipe: str, linearise: bool = False) -> Any:
        return operator(yhat, x, rules, recipe=recipe)

    if "dynamo" in keywords:
        raise InputError("dynamo: without it torch traces the network, which gdpnet refuses.")
    torch.onnx.export(
        model,
        arguments,
        fspath(path),
        dynamo=True,
        external_data=False,
        custom_translation_table={torch.ops.gdpnet.project.default: project},
        **keywords,
    )


def _schema() -> Any:
    """What ONNX is told of the node."""
    from onnx.defs import OpSchema

    member, optional = OpSchema.FormalParameter, OpSchema.FormalParameterOption.Optional
    real = [f"tensor({kind})" for kind in ("float16", "bfloat16", "float", "double")]
    return OpSchema(
        NAME,
        DOMAIN,
        1,
        doc="The nearest outputs that satisfy rules.",
        inputs=[
            member("yhat", "T"),
            member("x", "X", param_option=optional),
            member("rules", "tensor(uint8)"),
        ],
        outputs=[member("y", "T")],
        type_constraints=[("T", real, ""), ("X", real, "")],
        attributes=[OpSchema.Attribute("recipe", OpSchema.AttrType.STRING)],
    )


class Session:
    """Runs a file that `export` wrote, as `onnxruntime.InferenceSession` would.

    Args:
        path: of the file.
        options: keywords of `onnxruntime.InferenceSession`, such as `providers`.

    Example:
        >>> import gdpnet.nn.onnx
        >>> gdpnet.nn.onnx.Session.__name__  # needs gdpnet[onnx]
        'Session'
    """

    def __init__(self, path: str | PathLike[str], **options: Any) -> None:
        for package in ("onnx", "onnxruntime"):
            need(package, "onnx", "gdpnet.nn.onnx.Session needs")
        import onnx

        model = onnx.load(fspath(path))
        graph = model.graph
        initial = {i.name: onnx.numpy_helper.to_array(i) for i in graph.initializer}
        self.inputs = [i.name for i in graph.input if i.name not in initial]
        self.outputs = [o.name for o in graph.output]
        nodes = [node for node in graph.node if node.domain == DOMAIN]
        types = _types(onnx.shape_inference.infer_shapes(model).graph)
        known = list(self.inputs)
        self._steps: list[_Part | _Projection] = []
        for node in nodes:
            given = [name for name in node.input if name and name not in initial]
            self._steps += _parts(model, known, given, types, options)
            known += [name for name in given if name not in known]
            step = _Projection(node, initial)
            self._steps.append(step)
            known.append(step.output)
        self._steps += _parts(model, known, self.outputs, types, options)

    def run(
        self, outputs: Sequence[str] | None, inputs: Mapping[str, np.ndarray]
    ) -> list[np.ndarray]:
        """Run the graph.

        Args:
            outputs: names of what is wanted; None for all outputs.
            inputs: by name.
        """
        missing = [name for name in self.inputs if name not in inputs]
        if missing:
            raise InputError(f"inputs: '{missing[0]}' is missing; expected {self.inputs}.")
        values = dict(inputs)
        for step in self._steps:
            step.run(values)
        return [values[name] for name in self.outputs if outputs is None or name in outputs]


class _Projection:
    """A node that gdpnet runs."""

    def __init__(self, node: Any, initial: Mapping[str, np.ndarray]) -> None:
        if node.op_type != NAME:
            raise InputError(f"{DOMAIN}::{node.op_type}: this gdpnet knows {DOMAIN}::{NAME} only.")
        yhat, x, rules = node.input
        (recipe,) = [a.s.decode() for a in node.attribute if a.name == "recipe"]
        self.projector = projector_of(recipe, initial[rules].tobytes())
        self.yhat, self.x, (self.output,) = yhat, x, node.output
        self._constant = initial.get(x)

    def run(self, values: dict[str, np.ndarray]) -> None:
        x = values.get(self.x, self._constant)
        found = self.projector.solve(torch.from_numpy(values[self.yhat]), x, differentiable=False)
        values[self.output] = found.outputs().numpy()


class _Part:
    """What ONNX Runtime runs between projections."""

    def __init__(self, content: bytes, options: Mapping[str, Any]) -> None:
        import onnxruntime

        self.session = onnxruntime.InferenceSession(content, **options)
        self.inputs = [i.name for i in self.session.get_inputs()]
        self.outputs = [o.name for o in self.session.get_outputs()]

    def run(self, values: dict[str, np.ndarray]) -> None:
        found = self.session.run(self.outputs, {name: values[name] for name in self.inputs})
        values.update(zip(self.outputs, found, strict=True))


def _types(graph: Any) -> dict[str, Any]:
    """What is known of each value of a graph."""
    return {v.name: v for v in (*graph.value_info, *graph.input, *graph.output)}


def _parts(
    model: Any, known: list[str], wanted: Sequence[str], types: dict[str, Any], options: Any
) -> list[_Part]:
    """The part of a graph that makes values of others; none where they are there."""
    import onnx

    wanted = [name for name in dict.fromkeys(wanted) if name not in known]
    if not wanted:
        return []
    made = {name: node for node in model.graph.node for name in node.output}
    needed, waiting, given = [], list(wanted), []
    while waiting:  # back to what is known
        name = waiting.pop()
        if name in known:
            given.append(name)
        elif name in made and made[name] not in needed:
            needed.append(made[name])
            waiting += [n for n in made[name].input if n]
    nodes = [node for node in model.graph.node if node in needed]
    used = {name for node in nodes for name in node.input}
    part = onnx.ModelProto()
    part.CopyFrom(model)
    del part.graph.node[:], part.graph.input[:], part.graph.output[:], part.graph.initializer[:]
    part.graph.node.extend(nodes)
    part.graph.initializer.extend(i for i in model.graph.initializer if i.name in used)
    part.graph.input.extend(types[name] for name in dict.fromkeys(given))
    part.graph.output.extend(types[name] for name in wanted)
    return [_Part(part.SerializeToString(), options)]
