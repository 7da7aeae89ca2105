#include "bind/bind.hpp"
#include "bind/classes.hpp"
#include "bind/calls.hpp"
#include "bind/views.hpp"
#include "gdpnet/extended/engine.hpp"

namespace nb = nanobind;

namespace gdpnet::bind {

namespace {

using extended::Engine, extended::Extent, extended::Sources, extended::Tables;
using Numbers = Array<const double, 1>;
using Indices = Array<const Index, 1>;
using Bools = Array<const bool, 1>;

}  // namespace

void bind_extended(nb::module_& module) {
    module.attr("NO_BLOCK") = int(extended::kNoBlock);
    unchanging<Sources>(module, "ExtendedSources", "Rows of the rules; see extended/tables.hpp.")
        .def(
            "__init__",
            [](Sources* self, Index outputs, Numbers lower, Numbers upper, Indices start, Indices column,
               Numbers coefficient, Numbers scale, Bools equality, Indices varying) {
                new (self) Sources{outputs, copied(lower), copied(upper), copied(start), copied(column),
                                   copied(coefficient), copied(scale),
                                   {equality.data(), equality.data() + equality.extent(0)}, copied(varying)};
            },
            nb::arg("outputs"), nb::arg("lower"), nb::arg("upper"), nb::arg("start"), nb::arg("column"),
            nb::arg("coefficient"), nb::arg("scale"), nb::arg("equality"), nb::arg("varying"));
    unchanging<Tables>(module, "ExtendedTables", "Layouts as flat arrays; see extended/tables.hpp.")
        .def(
            "__init__",
            [](Tables* self, Indices layout_part, Indices part_column, Indices part_row, Indices part_global,
               Indices part_block, Indices block_product, Indices product_row, Indices column, Indices row,
               Indices member) {
                new (self) Tables{copied(layout_part), copied(part_column),   copied(part_row),    copied(part_global),
                                  copied(part_block),  copied(block_product), copied(product_row), copied(column),
                                  copied(row),         copied(member)};
            },
            nb::arg("layout_part"), nb::arg("part_column"), nb::arg("part_row"), nb::arg("part_global"),
            nb::arg("part_block"), nb::arg("block_product"), nb::arg("product_row"), nb::arg("column"), nb::arg("row"),
            nb::arg("member"));
    unchanging<Engine>(module, "Extended", "CNF and partial DNF of one rule model; see extended/engine.hpp.")
        .def(
            "__init__",
            [](Engine* self, const Sources& sources, const Tables& tables, Index columns, Index rows, Index entries,
               Index blocks, Index products) {
                new (self) Engine(sources, tables, Extent{columns, rows, entries, blocks, products});
            },
            nb::arg("sources"), nb::arg("tables"), nb::arg("columns"), nb::arg("rows"), nb::arg("entries"),
            nb::arg("blocks"), nb::arg("products"))
        .def(
            "solve",
            [](Engine& self, Indices layout, Array<const double, 2> bound, Array<const double, 3> varying,
               Array<const double, 2> start, Numbers weights, Array<const double, 2> price, double tolerance,
               Index threads, bool chosen, Array<double, 2> y, Array<double, 1> value, Array<std::int8_t, 1> outcome, Array<double, 2> weight,
               Array<std::int32_t, 2> product, Array<std::int8_t, 2> state, Array<std::int32_t, 2> rank,
               Array<Index, 2> size, Array<std::int32_t, 2> column, Array<std::int32_t, 2> row,
               Array<double, 2> basis_value) {
                const extended::Batch batch{layout, bound, varying, start, weights, price};
                const extended::Output output{y, value, outcome, weight, product};
                const extended::Bases bases{state, rank, size, column, row, basis_value};
                interruptible(kNoLimit, [&](Call& call) {
                    self.solve(batch, tolerance, {threads, chosen}, call, output, bases);
                });
            },
            nb::arg("layout"), nb::arg("bound"), nb::arg("varying"), nb::arg("start"), nb::arg("weights"),
            nb::arg("price"), nb::arg("tolerance"), nb::arg("threads"), nb::arg("chosen"), nb::arg("y"), nb::arg("value"),
            nb::arg("outcome"), nb::arg("weight"), nb::arg("product"), nb::arg("state"), nb::arg("rank"),
            nb::arg("size"), nb::arg("column"), nb::arg("row"), nb::arg("basis_value"),
            "Solves a batch: `layout` to `price` are what is solved, then come the tolerance for "
            "`product`, threads and whether they were chosen; the rest is written to.")
        .def(
            "vjp",
            [](Engine& self, Indices layout, Array<const double, 2> bound, Array<const double, 3> varying,
               Array<const double, 2> start, Numbers weights, Array<const double, 2> price, Index threads, bool chosen,
               Array<const std::int8_t, 1> outcome, Array<const std::int8_t, 2> state,
               Array<const std::int32_t, 2> rank, Array<const Index, 2> size, Array<const std::int32_t, 2> column,
               Array<const std::int32_t, 2> row, Array<const double, 2> basis_value, Array<const double, 2> gradient,
               Array<double, 2> to_start, Array<double, 2> to_bound, Array<double, 3> to_varying) {
                const extended::Batch batch{layout, bound, varying, start, weights, price};
                const extended::ConstBases bases{state, rank, size, column, row, basis_value};
                const extended::Gradients found{to_start, to_bound, to_varying};
                interruptible(kNoLimit, [&](Call& call) {
                    self.vjp(batch, {threads, chosen}, call, outcome, bases, gradient, found);
                });
            },
            nb::arg("layout"), nb::arg("bound"), nb::arg("varying"), nb::arg("start"), nb::arg("weights"),
            nb::arg("price"), nb::arg("threads"), nb::arg("chosen"), nb::arg("outcome"), nb::arg("state"), nb::arg("rank"),
            nb::arg("size"), nb::arg("column"), nb::arg("row"), nb::arg("basis_value"), nb::arg("gradient"),
            nb::arg("to_start"), nb::arg("to_bound"), nb::arg("to_varying"),
            "Adds to the last three arrays the gradients of a loss from `gradient`, that with respect to y.");
}

}  // namespace gdpnet::bind
