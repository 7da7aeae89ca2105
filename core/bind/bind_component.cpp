#include "bind/bind.hpp"
#include "bind/classes.hpp"
#include "bind/tuples.hpp"
#include "bind/views.hpp"
#include "gdpnet/component.hpp"

namespace nb = nanobind;

namespace gdpnet::bind {

namespace {

using Numbers = Array<const double, 1>;
using Indices = Array<const Index, 1>;
using Bools = Array<const bool, 1>;

Flags flags(const Bools& array) { return {array.data(), array.data() + array.extent(0)}; }

// The arrays of a `CurveArrays`; see arrays.py.
Curves curves_of(nb::handle from) {
    Curves curves;
    if (from.is_none()) return curves;
    curves.row = copied(entry<const Index, 1>(from, 0));
    curves.start = copied(entry<const Index, 1>(from, 1));
    const auto shape = entry<const Index, 1>(from, 2);
    const auto weight = entry<const double, 1>(from, 3), exponent = entry<const double, 1>(from, 4);
    const auto first = entry<const Index, 1>(from, 5);
    curves.argument = copied(entry<const Index, 1>(from, 6));
    const Index count = shape.extent(0);
    expect(weight.extent(0) == count && exponent.extent(0) == count && first.extent(0) == count + 1 &&
               curves.start.size() == curves.row.size() + 1 && curves.start.back() == count &&
               first.data()[count] == Index(curves.argument.size()),
           "curves: lists that belong together");
    for (Index k = 0; k < count; ++k) {
        expect(shape.data()[k] >= 0 && shape.data()[k] <= Index(Shape::power), "curves: a known shape");
        curves.curve.push_back({Shape(shape.data()[k]), weight.data()[k], exponent.data()[k], first.data()[k], first.data()[k + 1]});
    }
    return curves;
}

}  // namespace

void bind_component(nb::module_& module) {
    unchanging<Rows>(module, "Rows", "Rows of a component, scaled by powers of two; see component.hpp.")
        .def(
            "__init__",
            [](Rows* self, Index outputs, Numbers lower, Numbers upper, Bools integer, Indices start, Indices column,
               Numbers coefficient, Numbers largest, Numbers scale, Bools equality, Indices varying, Indices global_rows,
               bool plain, nb::handle curves) {
                new (self) Rows{outputs,           copied(lower),    copied(upper),   flags(integer),
                                copied(start),     copied(column),   copied(coefficient), copied(largest),
                                copied(scale),     flags(equality),  copied(varying), {},
                                copied(global_rows), plain,      curves_of(curves)};
                self->place.assign(self->equality.size(), -1);
                for (std::size_t v = 0; v < self->varying.size(); ++v) self->place[std::size_t(self->varying[v])] = Index(v);
                for (Index i : self->curves.argument) expect(0 <= i && i < self->count(), "curves: arguments are rows");
                for (Index i : self->curves.row)
                    expect(0 <= i && i < self->count() && !self->equality[i], "curves: of rows that are no equalities");
                self->add_cuts();
            },
            nb::arg("outputs"), nb::arg("lower"), nb::arg("upper"), nb::arg("integer"), nb::arg("start"), nb::arg("column"),
            nb::arg("coefficient"), nb::arg("largest"), nb::arg("scale"), nb::arg("equality"), nb::arg("varying"),
            nb::arg("global_rows"), nb::arg("plain"), nb::arg("curves").none());
    unchanging<Logic>(module, "Logic", "Booleans and clauses of a component; see component.hpp.")
        .def(
            "__init__",
            [](Logic* self, Indices clause_start, Indices clause_literal, Indices clause_guard, Indices true_start,
               Indices true_row, Indices false_start, Indices false_row, Indices guarded_start, Indices guarded_clause,
               Bools tied, Indices priced, Indices priced_entry) {
                new (self) Logic{copied(clause_start), copied(clause_literal), copied(clause_guard),  copied(true_start),
                                 copied(true_row),     copied(false_start),    copied(false_row),     copied(guarded_start),
                                 copied(guarded_clause), flags(tied),          copied(priced),         copied(priced_entry)};
                expect(self->priced.size() == self->priced_entry.size(), "priced: as many as their entries");
                for (std::size_t p = 0; p < self->priced.size(); ++p) {
                    const Index k = self->priced[p], e = self->priced_entry[p];
                    expect(0 <= k && k < self->booleans() && 0 <= e && e < Index(self->clause_literal.size()) &&
                               self->clause_literal[e] == k + 1,
                           "priced: booleans, and their entries among the literals");
                }
            },
            nb::arg("clause_start"), nb::arg("clause_literal"), nb::arg("clause_guard"), nb::arg("true_start"),
            nb::arg("true_row"), nb::arg("false_start"), nb::arg("false_row"), nb::arg("guarded_start"),
            nb::arg("guarded_clause"), nb::arg("tied"), nb::arg("priced"), nb::arg("priced_entry"));
    unchanging<Component>(module, "Component", "Rows and clauses that can be projected by themselves.")
        .def(nb::init<Rows, Logic>(), nb::arg("rows"), nb::arg("logic"));
}

}  // namespace gdpnet::bind
