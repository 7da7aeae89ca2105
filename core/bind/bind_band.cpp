#include "bind/bind.hpp"
#include "bind/classes.hpp"
#include "bind/calls.hpp"
#include "bind/views.hpp"
#include "gdpnet/band/solver.hpp"

namespace nb = nanobind;

namespace gdpnet::bind {

void bind_band(nb::module_& module) {
    unchanging<band::Band>(module, "Band", "Products with weight of a batch; see band/products.hpp.");
    unchanging<band::Solver>(module, "BandSolver", "The regularised program of a component; see band/solver.hpp.")
        .def(
            "__init__",
            [](band::Solver* self, const Component& component, Array<const Index, 1> clause_start,
               Array<const Index, 1> option_start, Array<const Index, 1> literal, Array<const bool, 1> proposition) {
                Flags propositions(proposition.data(), proposition.data() + proposition.extent(0));
                new (self) band::Solver(component, {copied(clause_start), copied(option_start), copied(literal),
                                                    std::move(propositions)});
            },
            nb::arg("component"), nb::arg("clause_start"), nb::arg("option_start"), nb::arg("literal"),
            nb::arg("proposition"), nb::keep_alive<1, 2>())
        .def(
            "solve",
            [](band::Solver& self, Array<const bool, 2> active, Array<const double, 3> varying,
               Array<const double, 2> bound, Array<const double, 2> yhat, Array<const double, 1> weights,
               Array<const double, 2> nearest, Array<const Truth, 2> assignment, double eps, Index cap, Index threads,
               bool chosen, double time_limit, double patience, Array<Truth, 1> status, Array<double, 2> y, Array<double, 1> value,
               Array<Index, 1> products, Array<bool, 1> capped, Array<const double, 2> price, double price_unit) {
                band::Band found;
                interruptible(time_limit, [&](Call& call) {
                    found = self.solve({varying, bound, yhat, weights, eps, price, price_unit}, {active, nearest, assignment}, cap,
                                       {status, y, value, products, capped}, {threads, chosen}, call);
                }, patience);
                return found;
            },
            nb::arg("active"), nb::arg("varying"), nb::arg("bound"), nb::arg("yhat"), nb::arg("weights"),
            nb::arg("nearest"), nb::arg("assignment"), nb::arg("eps"), nb::arg("cap"), nb::arg("threads"),
            nb::arg("chosen"), nb::arg("time_limit"), nb::arg("patience"), nb::arg("status"), nb::arg("y"),
            nb::arg("value"), nb::arg("products"), nb::arg("capped"), nb::arg("price"), nb::arg("price_unit"),
            "Solves a batch: writes status and y, adds to value and products, sets capped. Returns the band.")
        .def(
            "vjp",
            [](band::Solver& self, const band::Band& band, Array<const double, 3> varying, Array<const double, 2> bound,
               Array<const double, 2> yhat, Array<const double, 1> weights, double eps, Index threads, bool chosen,
               Array<const double, 2> gradient, Array<double, 2> to_yhat, Array<double, 2> to_bound,
               Array<double, 3> to_varying, Array<double, 2> to_price) {
                interruptible(kNoLimit, [&](Call& call) {
                    self.vjp({varying, bound, yhat, weights, eps}, band, {gradient, to_yhat, to_bound, to_varying, to_price},
                             {threads, chosen}, call);
                });
            },
            nb::arg("band"), nb::arg("varying"), nb::arg("bound"), nb::arg("yhat"), nb::arg("weights"), nb::arg("eps"),
            nb::arg("threads"), nb::arg("chosen"), nb::arg("gradient"), nb::arg("to_yhat"), nb::arg("to_bound"),
            nb::arg("to_varying"), nb::arg("to_price"), "Gradients of a batch; to_yhat begins as the gradient, the others as 0.");
}

}  // namespace gdpnet::bind
