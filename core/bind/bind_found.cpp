#include <nanobind/ndarray.h>

#include "bind/batches.hpp"
#include "bind/bind.hpp"
#include "bind/calls.hpp"
#include "bind/classes.hpp"
#include "gdpnet/found.hpp"

namespace nb = nanobind;

namespace gdpnet::bind {

namespace {

// An array of numpy that keeps its owner alive.
template <class T>
nb::object shown(const Room<T>& room, std::initializer_list<std::size_t> shape, nb::handle owner) {
    return nb::cast(nb::ndarray<nb::numpy, T, nb::c_contig>(room.values.get(), shape, owner));
}

template <class T>
nb::object one_each(const Room<T>& room, nb::handle owner) {
    return shown(room, {std::size_t(room.lines)}, owner);
}

template <class T>
nb::object line_each(const Room<T>& room, nb::handle owner) {
    return shown(room, {std::size_t(room.lines), std::size_t(room.width)}, owner);
}

const Found& found_of(nb::handle self) { return *nb::inst_ptr<Found>(self); }

nb::tuple instance(nb::handle self) {
    const Found& found = found_of(self);
    const Tensor<double> varying = found.coefficients();
    return nb::make_tuple(
        line_each(found.active, self), line_each(found.right, self),
        shown(found.varying, {std::size_t(varying.size), std::size_t(varying.lines), std::size_t(varying.width)}, self),
        line_each(found.price, self));
}

nb::tuple answers(nb::handle self) {
    const Found& found = found_of(self);
    return nb::make_tuple(one_each(found.distance, self), one_each(found.bound, self), one_each(found.status, self),
                          line_each(found.assignment, self), one_each(found.nodes, self));
}

nb::tuple dictionaries(nb::handle self) {
    const Found& found = found_of(self);
    return nb::make_tuple(line_each(found.column_state, self), line_each(found.column_source, self),
                          line_each(found.tight_rows, self), line_each(found.multipliers, self),
                          line_each(found.reduced_costs, self));
}

// The caller owns what is returned.
template <class AnySearch>
Found* find_nearest(const Tape& tape, AnySearch& search, const Numbers& x, const Numbers& yhat, const Weights& weights,
                    double price_unit, Index node_limit, double tolerance, double time_limit, Index threads, bool chosen,
                    bool detailed, const Array<double, 2>& z, double patience) {
    const Component& component = search.component();
    const Rows& rows = component.rows;
    const Index size = yhat.extent(0);
    expect(tape.clauses() == component.logic.clauses() && Index(tape.bound.size()) == rows.given() &&
               tape.varying.lines == Index(rows.varying.size()) && tape.varying.width == rows.columns() &&
               tape.price.size() == component.logic.priced.size(),
           "find: a component that is all of the rules");
    expect(x.extent(0) == size && x.extent(1) >= tape.inputs && yhat.extent(1) == rows.outputs &&
               weights.extent(0) == rows.outputs && z.extent(0) == size && z.extent(1) == rows.columns(),
           "find: arrays of the batch's size");
    auto found = std::make_unique<Found>(tape, component, size, detailed);
    bool finite = true;
    interruptible(time_limit, [&](Call& call) {
        finite = find(tape, search, x, yhat, weights, price_unit, {node_limit, tolerance, 0.0}, {threads, chosen}, call, z, *found);
    }, patience);
    return finite ? found.release() : nullptr;
}

template <class Function>
void define_find(nb::module_& module, const char* name, Function function, nb::sig signature) {
    module.def(name, function, nb::arg("tape"), nb::arg("search"), nb::arg("x"), nb::arg("yhat"), nb::arg("weights"),
               nb::arg("price_unit"), nb::arg("node_limit"), nb::arg("tolerance"), nb::arg("time_limit"), nb::arg("threads"),
               nb::arg("chosen"), nb::arg("detailed"), nb::arg("z"), nb::arg("patience") = kNoLimit, nb::rv_policy::take_ownership,
               signature,
               "Evaluates rules that are one component and projects a batch, writing the points; None where a number of "
               "the rules is not finite.");
}

void vjp(const Found& self, const Component& component, const Numbers& z, const Array<double, 2>& gradient,
         const Array<double, 2>& to_yhat, const Array<double, 2>& to_bound, const Array<double, 3>& to_varying) {
    const Rows& rows = component.rows;
    const Tensor<double> varying = self.coefficients();
    const Index size = self.status.lines, n = self.columns;
    expect(self.detailed, "vjp: the final dictionaries were not asked for");
    expect(rows.columns() == n && z.extent(0) == size && z.extent(1) == n && gradient.extent(0) == size &&
               gradient.extent(1) == n && to_yhat.extent(0) == size && to_yhat.extent(1) <= n &&
               to_bound.extent(0) == size && to_bound.extent(1) == rows.given() && to_varying.extent(0) == size &&
               to_varying.extent(1) == varying.lines && (varying.lines == 0 || to_varying.extent(2) == n),
           "vjp: arrays of the batch's size");
    nb::gil_scoped_release unlock;
    pull_back_vertex(rows, varying, self.dictionaries(), z, {gradient, to_yhat, to_bound, to_varying});
}

void vjp_yhat(const Found& self, const Component& component, const Numbers& z, const Numbers& gradient,
              const Array<double, 2>& to_yhat) {
    const Rows& rows = component.rows;
    const Index size = self.status.lines, n = self.columns, outputs = gradient.extent(1);
    expect(self.detailed, "vjp: the final dictionaries were not asked for");
    expect(rows.columns() == n && z.extent(0) == size && z.extent(1) == n && gradient.extent(0) == size && outputs <= n &&
               to_yhat.extent(0) == size && to_yhat.extent(1) == outputs,
           "vjp: arrays of the batch's size");
    nb::gil_scoped_release unlock;
    Room<double> own(size, n);
    const Matrix<const double> given = gradient;
    const Matrix<double> to = to_yhat;
    for (Index s = 0; s < size; ++s) {
        const auto rest = std::copy(given[s].begin(), given[s].end(), Matrix<double>(own)[s].begin());
        std::fill(rest, rest + (n - outputs), 0.0);
        std::fill(to[s].begin(), to[s].end(), 0.0);
    }
    pull_back_vertex(rows, self.coefficients(), self.dictionaries(), z, {own, to, {}, {}});
}

}  // namespace

void bind_found(nb::module_& module) {
    nb::class_<Found>(module, "Found", "A batch and what was found; see found.hpp.")
        .def_ro("proved", &Found::proved, "Whether all samples have a point that is proved nearest.")
        .def_ro("detailed", &Found::detailed, "Whether the final dictionaries were kept.")
        .def("instance", &instance, nb::sig("def instance(self) -> tuple[numpy.typing.NDArray, ...]"), "The arrays of an `Instance`.")
        .def("answers", &answers, nb::sig("def answers(self) -> tuple[numpy.typing.NDArray, ...]"),
             "The arrays of an `Output` but for its points.")
        .def("dictionaries", &dictionaries, nb::sig("def dictionaries(self) -> tuple[numpy.typing.NDArray, ...]"),
             "The arrays of a `Detail`.")
        .def("vjp", &vjp, nb::arg("component"), nb::arg("z"), nb::arg("gradient"), nb::arg("to_yhat"),
             nb::arg("to_bound"), nb::arg("to_varying"), "As `vjp_vertex`, from its own dictionaries.")
        .def("vjp_yhat", &vjp_yhat, nb::arg("component"), nb::arg("z"), nb::arg("gradient"), nb::arg("to_yhat"),
             "The gradient with respect to the predictions alone, written over `to_yhat`; `gradient` is that of the outputs.");
    // Two names, for calls of a function that has several signatures take longer.
    define_find(module, "find_nearest", &find_nearest<Search>,
                nb::sig("def find_nearest(tape: Tape, search: Search, x: numpy.typing.NDArray, yhat: numpy.typing.NDArray, "
                        "weights: numpy.typing.NDArray, price_unit: float, node_limit: int, tolerance: float, time_limit: float, "
                        "threads: int, chosen: bool, detailed: bool, z: numpy.typing.NDArray, patience: float = ...) -> Found | None"));
    define_find(module, "find_euclidean", &find_nearest<EuclideanSearch>,
                nb::sig("def find_euclidean(tape: Tape, search: EuclideanSearch, x: numpy.typing.NDArray, "
                        "yhat: numpy.typing.NDArray, weights: numpy.typing.NDArray, price_unit: float, node_limit: int, "
                        "tolerance: float, time_limit: float, threads: int, chosen: bool, detailed: bool, z: numpy.typing.NDArray, "
                        "patience: float = ...) -> Found | None"));
}

}  // namespace gdpnet::bind
