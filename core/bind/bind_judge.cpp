#include <algorithm>

#include "bind/bind.hpp"
#include "bind/classes.hpp"
#include "bind/tuples.hpp"
#include "gdpnet/judge.hpp"

namespace nb = nanobind;

namespace gdpnet::bind {

namespace {

using Indices = Array<const Index, 1>;
using Numbers = Array<const double, 1>;
using Bools = Array<const bool, 1>;

Flags flags(const Bools& array) { return {array.data(), array.data() + array.extent(0)}; }

Lists lists_of(nb::handle from) {
    return {copied(entry<const Index, 1>(from, 0)), copied(entry<const Index, 1>(from, 1))};
}

void make(Judge* self, const Array<const double, 2>& shared, const Numbers& largest, const Indices& place,
          const Bools& equality, nb::handle boolean_rows, const Indices& nested_clause, const Indices& nested_guard,
          nb::handle nested_booleans, nb::handle rule_booleans, const Indices& global_rows, const Numbers& lower,
          const Numbers& upper, const Bools& integer) {
    Table<double> coefficients(shared.extent(0), shared.extent(1));
    std::copy_n(shared.data(), shared.extent(0) * shared.extent(1), coefficients.values.data());
    new (self) Judge{std::move(coefficients), copied(largest),           copied(place),        flags(equality),
                     lists_of(boolean_rows),  copied(nested_clause),     copied(nested_guard), lists_of(nested_booleans),
                     lists_of(rule_booleans), copied(global_rows),       copied(lower),        copied(upper),
                     flags(integer)};
}

void judge(const Judge& self, const Indices& samples, const Array<const double, 2>& bound,
           const Array<const double, 3>& varying, const Array<const bool, 2>& active,
           const Array<const bool, 2>& rule_active, const Array<const double, 2>& y, double tolerance,
           const Array<std::int8_t, 2>& assignment, const Array<double, 2>& violation, const Array<bool, 1>& holds) {
    const Index size = y.extent(0), d = Index(self.lower.size());
    Index places = 0, clauses = 0;
    for (Index place : self.place) places = std::max(places, place + 1);
    for (Index clause : self.nested_clause) clauses = std::max(clauses, clause + 1);
    expect(bound.extent(0) == size && bound.extent(1) >= Index(self.place.size()) && varying.extent(0) == size &&
               varying.extent(1) >= places && (places == 0 || varying.extent(2) >= d) && active.extent(0) == size &&
               active.extent(1) >= clauses && rule_active.extent(0) == size &&
               rule_active.extent(1) == self.rule_booleans.count() && y.extent(1) == d && assignment.extent(0) == size &&
               assignment.extent(1) == self.boolean_rows.count() && violation.extent(0) == size &&
               violation.extent(1) == self.rule_booleans.count() && holds.extent(0) == samples.extent(0),
           "judge: arrays of the batch's size");
    for (Index s : Vector<const Index>(samples)) expect(s >= 0 && s < size, "judge: no such sample");
    nb::gil_scoped_release unlock;
    self({samples, bound, varying, active, rule_active, y, tolerance, assignment, violation, holds});
}

}  // namespace

void bind_judge(nb::module_& module) {
    unchanging<Judge>(module, "Judge", "Which rules hold at points, where rows alone decide; see judge.hpp.")
        .def("__init__", &make, nb::arg("shared"), nb::arg("largest"), nb::arg("place"), nb::arg("equality"),
             nb::arg("boolean_rows"), nb::arg("nested_clause"), nb::arg("nested_guard"), nb::arg("nested_booleans"),
             nb::arg("rule_booleans"), nb::arg("global_rows"), nb::arg("lower"), nb::arg("upper"), nb::arg("integer"))
        .def("judge", &judge, nb::arg("samples"), nb::arg("bound"), nb::arg("varying"), nb::arg("active"),
             nb::arg("rule_active"), nb::arg("y"), nb::arg("tolerance"), nb::arg("assignment"), nb::arg("violation"),
             nb::arg("holds"), "Writes what holds and by how much rules are violated.");
}

}  // namespace gdpnet::bind
