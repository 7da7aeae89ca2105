#include <algorithm>

#include "bind/bind.hpp"
#include "bind/classes.hpp"
#include "bind/tuples.hpp"
#include "gdpnet/tape.hpp"

namespace nb = nanobind;

namespace gdpnet::bind {

namespace {

using Indices = Array<const Index, 1>;
using Numbers = Array<const double, 1>;

std::vector<Term> terms_of(nb::handle from, Index registers, Index entries) {
    const auto to = entry<const Index, 1>(from, 0), source = entry<const Index, 1>(from, 1);
    const auto multiplier = entry<const double, 1>(from, 2);
    std::vector<Term> terms;
    for (Index e = 0; e < to.extent(0); ++e) {
        terms.push_back({to.data()[e], source.data()[e], multiplier.data()[e]});
        expect(terms.back().to >= 0 && terms.back().to < entries && terms.back().from >= 0 && terms.back().from < registers,
               "a term of the tape leads nowhere");
    }
    return terms;
}

void make(Tape* self, Index inputs, nb::handle lines, const Numbers& bound, nb::handle bound_terms,
          const Array<const double, 2>& varying, nb::handle varying_terms, const Indices& clause_start,
          const Indices& clause_register, const Numbers& price, nb::handle price_terms) {
    new (self) Tape;
    const auto code = entry<const Index, 1>(lines, 0), first = entry<const Index, 1>(lines, 1),
               second = entry<const Index, 1>(lines, 2), third = entry<const Index, 1>(lines, 3);
    const auto constant = entry<const double, 1>(lines, 4);
    const Index registers = code.extent(0);
    self->inputs = inputs;
    for (Index r = 0; r < registers; ++r) {
        const Index operands[] = {first.data()[r], second.data()[r], third.data()[r]};
        for (Index a : operands) expect(a >= 0 && (a < r || a == 0 || a < inputs), "a line of the tape reads ahead");
        self->lines.push_back({Operation(code.data()[r]), std::int32_t(operands[0]), std::int32_t(operands[1]),
                               std::int32_t(operands[2]), constant.data()[r]});
    }
    self->bound = copied(bound);
    self->bound_terms = terms_of(bound_terms, registers, bound.extent(0));
    self->varying = Table<double>(varying.extent(0), varying.extent(1));
    std::copy_n(varying.data(), varying.extent(0) * varying.extent(1), self->varying.values.data());
    self->varying_terms = terms_of(varying_terms, registers, varying.extent(0) * varying.extent(1));
    self->clause_start = copied(clause_start);
    self->clause_register = copied(clause_register);
    self->price = copied(price);
    self->price_terms = terms_of(price_terms, registers, price.extent(0));
}

bool instantiate(const Tape& self, const Array<const double, 2>& x, const Array<bool, 2>& active,
                 const Array<double, 2>& bound, const Array<double, 3>& varying, const Array<double, 2>& price) {
    const Index size = x.extent(0);
    expect(x.extent(1) >= self.inputs && active.extent(0) == size && active.extent(1) == self.clauses() &&
               bound.extent(0) == size && bound.extent(1) == Index(self.bound.size()) && varying.extent(0) == size &&
               varying.extent(1) == self.varying.lines && varying.extent(2) == self.varying.width &&
               price.extent(0) == size && price.extent(1) == Index(self.price.size()),
           "instantiate: arrays of the batch's size");
    nb::gil_scoped_release unlock;
    return self.instantiate(x, active, bound, varying, price);
}

}  // namespace

void bind_tape(nb::module_& module) {
    nb::list names;
    for (const char* name : kOperations) names.append(name);
    module.attr("OPERATIONS") = nb::tuple(names);
    unchanging<Tape>(module, "Tape", "Rules at an input, as elementary operations; see tape.hpp.")
        .def("__init__", &make, nb::arg("inputs"), nb::arg("lines"), nb::arg("bound"), nb::arg("bound_terms"),
             nb::arg("varying"), nb::arg("varying_terms"), nb::arg("clause_start"), nb::arg("clause_register"),
             nb::arg("price"), nb::arg("price_terms"))
        .def("instantiate", &instantiate, nb::arg("x"), nb::arg("active"), nb::arg("bound"), nb::arg("varying"),
             nb::arg("price"), "Writes the rules of a batch; whether all numbers are finite.");
}

}  // namespace gdpnet::bind
