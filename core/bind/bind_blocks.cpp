#include "bind/bind.hpp"
#include "bind/classes.hpp"
#include "bind/calls.hpp"
#include "bind/views.hpp"
#include "gdpnet/blocks/blocks.hpp"

namespace nb = nanobind;

namespace gdpnet::bind {

namespace {

using Numbers = Array<const double, 1>;
using Indices = Array<const Index, 1>;
using Lines = Array<const double, 2>;
using Stack = Array<const double, 3>;

void expect(bool fits, const char* what) {
    if (!fits) throw nb::value_error(what);
}

// The samples of a call. `path` is written by `solve` and read by `vjp`.
blocks::Batch batch_of(const blocks::Part& part, const Indices& samples, const Lines& bound, const Stack& varying,
                       const Lines& yhat, const Numbers& weights, double eps, const Lines& price, const Array<double, 2>& path) {
    const Index size = yhat.extent(0);
    expect(bound.extent(0) == size && varying.extent(0) == size, "samples of bound, varying and yhat differ");
    expect(weights.extent(0) == yhat.extent(1), "weights: one for each output");
    expect(path.extent(0) == samples.extent(0) && path.extent(1) == part.path_width(), "path: wrong shape");
    expect(price.extent(1) == 0 || (price.extent(0) == samples.extent(0) && price.extent(1) == part.shape().copies),
           "price: (samples, copies), or none");
    for (Index k = 0; k < samples.extent(0); ++k)
        expect(samples.data()[k] >= 0 && samples.data()[k] < size, "samples: out of range");
    blocks::Batch batch;
    batch.samples = samples.data();
    batch.bound = bound.data();
    batch.varying = varying.data();
    batch.yhat = yhat.data();
    batch.weights = weights.data();
    batch.size = samples.extent(0);
    batch.bounds = bound.extent(1);
    batch.varying_lines = varying.extent(1);
    batch.columns = varying.extent(2);
    batch.outputs = yhat.extent(1);
    batch.eps = eps;
    if (price.extent(1) > 0) batch.price = price.data();
    batch.path = path.data();
    return batch;
}

}  // namespace

void bind_blocks(nb::module_& module) {
    unchanging<blocks::Part>(module, "BlockPart",
                             "The regularised program of a part with several blocks; see blocks/path.hpp.")
        .def(
            "__init__",
            [](blocks::Part* self, Index outputs, Index auxiliaries, Indices columns, Numbers lower, Numbers upper,
               Indices source, Indices varying, Lines shared, Indices first_copy, Indices first_place, Indices row,
               Array<const bool, 1> equality, Indices start, Indices entry) {
                const std::vector<double> coefficients(shared.data(), shared.data() + shared.extent(0) * shared.extent(1));
                new (self) blocks::Part({outputs, auxiliaries, copied(columns), copied(lower), copied(upper), copied(source),
                                         copied(varying), coefficients, copied(first_copy), copied(first_place), copied(row),
                                         Flags(equality.data(), equality.data() + equality.extent(0)), copied(start),
                                         copied(entry)});
            },
            nb::arg("outputs"), nb::arg("auxiliaries"), nb::arg("columns"), nb::arg("lower"), nb::arg("upper"),
            nb::arg("source"), nb::arg("varying"), nb::arg("shared"), nb::arg("first_copy"), nb::arg("first_place"),
            nb::arg("row"), nb::arg("equality"), nb::arg("start"), nb::arg("entry"))
        .def_prop_ro("path_width", &blocks::Part::path_width, "Numbers that stay of a sample for its derivative.")
        .def(
            "solve",
            [](blocks::Part& self, Indices samples, Lines bound, Stack varying, Lines yhat, Numbers weights, double eps,
               Lines price, Array<double, 2> path, Array<double, 2> y, Array<bool, 1> solved, Index threads, bool chosen) {
                const auto batch = batch_of(self, samples, bound, varying, yhat, weights, eps, price, path);
                expect(y.extent(0) == yhat.extent(0) && y.extent(1) == yhat.extent(1) && solved.extent(0) == yhat.extent(0),
                       "y, solved: wrong shape");
                interruptible(kNoLimit, [&](Call& call) {
                    self.solve(batch, {y.data(), solved.data()}, {threads, chosen}, call);
                });
            },
            nb::arg("samples"), nb::arg("bound"), nb::arg("varying"), nb::arg("yhat"), nb::arg("weights"), nb::arg("eps"),
            nb::arg("price"), nb::arg("path"), nb::arg("y"), nb::arg("solved"), nb::arg("threads"), nb::arg("chosen"))
        .def(
            "vjp",
            [](blocks::Part& self, Indices samples, Lines bound, Stack varying, Lines yhat, Numbers weights, double eps,
               Lines price, Array<double, 2> path, Lines gradient, Array<double, 2> to_yhat, Array<double, 2> to_bound,
               Array<double, 3> to_varying, Array<double, 2> to_price, Index threads, bool chosen) {
                const auto batch = batch_of(self, samples, bound, varying, yhat, weights, eps, price, path);
                expect(gradient.extent(0) == yhat.extent(0) && gradient.extent(1) == yhat.extent(1) &&
                           to_yhat.extent(0) == yhat.extent(0) && to_yhat.extent(1) == yhat.extent(1) &&
                           to_bound.extent(0) == bound.extent(0) && to_bound.extent(1) == bound.extent(1) &&
                           to_varying.extent(0) == varying.extent(0) && to_varying.extent(1) == varying.extent(1) &&
                           to_varying.extent(2) == varying.extent(2) && to_price.extent(0) == price.extent(0) &&
                           to_price.extent(1) == price.extent(1),
                       "gradients: wrong shape");
                interruptible(kNoLimit, [&](Call& call) {
                    self.vjp(batch, {gradient.data(), to_yhat.data(), to_bound.data(), to_varying.data(),
                                     batch.price == nullptr ? nullptr : to_price.data()},
                             {threads, chosen}, call);
                });
            },
            nb::arg("samples"), nb::arg("bound"), nb::arg("varying"), nb::arg("yhat"), nb::arg("weights"), nb::arg("eps"),
            nb::arg("price"), nb::arg("path"), nb::arg("gradient"), nb::arg("to_yhat"), nb::arg("to_bound"),
            nb::arg("to_varying"), nb::arg("to_price"), nb::arg("threads"), nb::arg("chosen"));
}

}  // namespace gdpnet::bind
