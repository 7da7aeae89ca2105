#include "bind/bind.hpp"
#include "bind/calls.hpp"
#include "bind/views.hpp"
#include "gdpnet/face.hpp"
#include "gdpnet/least_norm.hpp"
#include "gdpnet/tolerances.hpp"

namespace nb = nanobind;

namespace gdpnet::bind {

namespace {

// A batch as Python hands it over; the samples of a call have all of these.
struct Batch {
    Matrix<const bool> active;
    Tensor<const double> varying;
    Matrix<const double> bound, yhat;
    Vector<const double> weights;

    Given operator[](Index s) const { return {active[s], varying[s], bound[s], yhat[s], weights}; }
};

// Ties of one component, with the memory that its threads use.
class LeastNorms {
public:
    explicit LeastNorms(const Component& component) : component_(component) {}

    void settle(Array<const bool, 2> active, Array<const double, 3> varying, Array<const double, 2> bound,
                Array<const double, 2> yhat, Array<const double, 1> weights, Array<const Index, 1> samples,
                Array<double, 2> z, Array<std::int8_t, 2> assignment, Array<const double, 1> distance,
                Index node_limit, double time_limit, Index threads, bool chosen, Array<Index, 1> nodes,
                Array<std::int8_t, 1> ties) {
        const Batch batch{active, varying, bound, yhat, weights};
        const Vector<const Index> which = samples;
        const Matrix<double> points = z;
        const Matrix<std::int8_t> assignments = assignment;
        interruptible(time_limit, [&](Call& call) {
            over_samples(Index(which.size()), {threads, chosen}, call, [&](Watch& watch, Index first, Index last) {
                auto work = pool_.take([&] { return std::make_unique<LeastNorm>(component_); });
                for (Index at = first; at < last && !watch.interrupted(); ++at) {
                    const Index s = which[at];
                    const Tie tie = work->settle(batch[s], points[s], assignments[s], distance.data()[s], node_limit,
                                                 watch, nodes.data()[at]);
                    ties.data()[at] = std::int8_t(tie);
                }
                pool_.give(std::move(work));
            });
        });
    }

private:
    const Component& component_;
    Pool<LeastNorm> pool_;
};

// Derivatives of one component's points.
void vjp_face(const Component& component, bool kinks, Array<const double, 3> varying, Array<const double, 2> bound,
              Array<const double, 2> yhat, Array<const double, 1> weights, Array<const std::int8_t, 2> assignment,
              Array<const double, 2> z, Array<double, 2> gradient, Array<double, 2> to_yhat, Array<double, 2> to_bound,
              Array<double, 3> to_varying) {
    const Batch batch{{}, varying, bound, yhat, weights};
    const Matrix<const std::int8_t> assignments = assignment;
    const Matrix<const double> points = z;
    const Matrix<double> gradients = gradient, to_yhats = to_yhat, to_bounds = to_bound;
    const Tensor<double> to_varyings = to_varying;
    nb::gil_scoped_release unlock;
    Face face(component, kinks);
    for (Index s = 0; s < points.lines; ++s)
        face.vjp(batch[s], assignments[s], points[s], gradients[s], to_yhats[s], to_bounds[s], to_varyings[s]);
}

}  // namespace

void bind_quadratic(nb::module_& module) {
    nb::class_<LeastNorms>(module, "LeastNorm", "Of all l1-nearest points of a component the one nearest in l2; see least_norm.hpp.")
        .def(nb::init<const Component&>(), nb::arg("component"), nb::keep_alive<1, 2>())
        .def("settle", &LeastNorms::settle, nb::arg("active"), nb::arg("varying"), nb::arg("bound"), nb::arg("yhat"),
             nb::arg("weights"), nb::arg("samples"), nb::arg("z"), nb::arg("assignment"), nb::arg("distance"),
             nb::arg("node_limit"), nb::arg("time_limit"), nb::arg("threads"), nb::arg("chosen"), nb::arg("nodes"),
             nb::arg("ties"),
             "Moves the nearest points of some samples; writes quadratic programs and what became of each.");
    module.def("vjp_face", &vjp_face, nb::arg("component"), nb::arg("kinks"), nb::arg("varying"), nb::arg("bound"),
               nb::arg("yhat"), nb::arg("weights"), nb::arg("assignment"), nb::arg("z"), nb::arg("gradient"),
               nb::arg("to_yhat"), nb::arg("to_bound"), nb::arg("to_varying"),
               "Adds the gradients of points that are nearest in l2 within a face; see face.hpp.");
    module.attr("TIGHT") = kTight;
}

}  // namespace gdpnet::bind
