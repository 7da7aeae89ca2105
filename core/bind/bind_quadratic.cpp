#include "bind/batches.hpp"
#include "bind/bind.hpp"
#include "bind/classes.hpp"
#include "bind/calls.hpp"
#include "gdpnet/curved_face.hpp"
#include "gdpnet/euclidean_search.hpp"
#include "gdpnet/face.hpp"
#include "gdpnet/least_norm.hpp"
#include "gdpnet/tolerances.hpp"

namespace nb = nanobind;

namespace gdpnet::bind {

namespace {

// Ties of one component, with the memory that its threads use.
class LeastNorms {
public:
    explicit LeastNorms(Component component) : component_(std::move(component)) {}

    void settle(const Bools& active, const Coefficients& varying, const Numbers& bound, const Numbers& yhat,
                const Weights& weights, const Array<const Index, 1>& samples, const Array<double, 2>& z,
                const Array<std::int8_t, 2>& assignment, const Array<const double, 1>& distance, Index node_limit,
                double time_limit, Index threads, bool chosen, const Array<Index, 1>& nodes,
                const Array<std::int8_t, 1>& ties) {
        const Batch batch = batch_of(component_, active, varying, bound, yhat, weights);
        expect(z.extent(0) == batch.size() && z.extent(1) == component_.rows.columns() &&
                   assignment.extent(0) == batch.size() && assignment.extent(1) == component_.logic.booleans() &&
                   distance.extent(0) == batch.size(),
               "z, assignment, distance: arrays of the batch's size");
        const Vector<const Index> which = samples;
        expect(nodes.extent(0) == samples.extent(0) && ties.extent(0) == samples.extent(0),
               "nodes, ties: as many as samples");
        for (Index s : which) expect(0 <= s && s < batch.size(), "samples: indices into the batch");
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
    Component component_;
    Pool<LeastNorm> pool_;
};

bool project(EuclideanSearch& self, const Bools& active, const Coefficients& varying, const Numbers& bound,
             const Numbers& yhat, const Weights& weights, const Numbers& price, double price_unit, Index node_limit,
             double tolerance, double lost, double time_limit, Index threads, bool chosen, nb::handle out, double patience,
             const SetsOfBatch* leaving) {
    Batch batch = priced_batch_of(self.component(), batch_of(self.component(), active, varying, bound, yhat, weights),
                                  price, price_unit);
    leave(batch, leaving);
    const AnswerArrays arrays(out);
    const Answers answers = arrays.views(self.component(), batch.size());
    interruptible(time_limit, [&](Call& call) {
        self.project(batch, {node_limit, tolerance, lost}, answers, {threads, chosen}, call);
    }, patience);
    return all_proved(answers);
}

// Derivatives of one component's points.
void vjp_face(const Component& component, bool kinks, const Coefficients& varying, const Numbers& bound,
              const Numbers& yhat, const Weights& weights, const Array<const std::int8_t, 2>& assignment,
              const Numbers& z, const Array<double, 2>& gradient, const Array<double, 2>& to_yhat,
              const Array<double, 2>& to_bound, const Array<double, 3>& to_varying) {
    const Rows& rows = component.rows;
    const Index size = z.extent(0), n = rows.columns(), k = Index(rows.varying.size());
    const auto is = [&](const auto& array, Index width) { return array.extent(0) == size && array.extent(1) == width; };
    const auto varies = [&](const auto& array) { return is(array, k) && (k == 0 || array.extent(2) == n); };
    expect(is(z, n) && is(gradient, n) && is(bound, rows.given()) && is(to_bound, rows.given()) &&
               is(yhat, rows.outputs) && is(to_yhat, rows.outputs) && is(assignment, component.logic.booleans()) &&
               weights.extent(0) == rows.outputs && varies(varying) && varies(to_varying),
           "vjp_face: arrays of the batch's size");
    const Batch batch{{}, varying, bound, yhat, weights};
    const Matrix<const std::int8_t> assignments = assignment;
    const Matrix<const double> points = z;
    const Matrix<double> gradients = gradient, to_yhats = to_yhat, to_bounds = to_bound;
    const Tensor<double> to_varyings = to_varying;
    nb::gil_scoped_release unlock;
    const auto each = [&](auto face) {
        for (Index s = 0; s < size; ++s)
            face.vjp(batch[s], assignments[s], points[s], gradients[s], to_yhats[s], to_bounds[s], to_varyings[s]);
    };
    if (rows.curves.none()) {
        each(Face(component, kinks));
    } else {
        each(CurvedFace(component, kinks));
    }
}

}  // namespace

void bind_quadratic(nb::module_& module) {
    unchanging<LeastNorms>(module, "LeastNorm", "Of all l1-nearest points of a component the one nearest in l2; see least_norm.hpp.")
        .def(nb::init<Component>(), nb::arg("component"))
        .def("settle", &LeastNorms::settle, nb::arg("active"), nb::arg("varying"), nb::arg("bound"), nb::arg("yhat"),
             nb::arg("weights"), nb::arg("samples"), nb::arg("z"), nb::arg("assignment"), nb::arg("distance"),
             nb::arg("node_limit"), nb::arg("time_limit"), nb::arg("threads"), nb::arg("chosen"), nb::arg("nodes"),
             nb::arg("ties"),
             "Moves the nearest points of some samples; writes quadratic programs and what became of each.");
    unchanging<EuclideanSearch>(module, "EuclideanSearch", "Euclidean projections of one component; see euclidean.hpp.")
        .def(nb::init<Component>(), nb::arg("component"))
        .def("project", &project, nb::arg("active"), nb::arg("varying"), nb::arg("bound"), nb::arg("yhat"),
             nb::arg("weights"), nb::arg("price"), nb::arg("price_unit"), nb::arg("node_limit"), nb::arg("tolerance"), nb::arg("lost"), nb::arg("time_limit"),
             nb::arg("threads"), nb::arg("chosen"), nb::arg("out"), nb::arg("patience") = kNoLimit,
             nb::arg("leaving").none() = nb::none(),
             "Projects a batch: writes the arrays of an `Output`, distances and bounds squared.");
    module.def("vjp_face", &vjp_face, nb::arg("component"), nb::arg("kinks"), nb::arg("varying"), nb::arg("bound"),
               nb::arg("yhat"), nb::arg("weights"), nb::arg("assignment"), nb::arg("z"), nb::arg("gradient"),
               nb::arg("to_yhat"), nb::arg("to_bound"), nb::arg("to_varying"),
               "Adds the gradients of points that are nearest in l2 within a face; see face.hpp.");
    module.attr("TIGHT") = kTight;
}

}  // namespace gdpnet::bind
