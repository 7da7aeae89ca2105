// Checks of whole arrays that take numpy longer than a projection.
#include <cmath>

#include "bind/bind.hpp"
#include "bind/views.hpp"

namespace nb = nanobind;

namespace gdpnet::bind {

namespace {

bool all_finite(const Array<const double, 2>& array) {
    const Index size = array.extent(0) * array.extent(1);
    double sum = 0.0;  // of zeros, or NaN
    for (Index i = 0; i < size; ++i) sum += 0.0 * array.data()[i];
    return sum == 0.0;
}

}  // namespace

void bind_checks(nb::module_& module) {
    module.def("all_finite", &all_finite, nb::arg("array"), "Whether all entries are finite numbers.");
}

}  // namespace gdpnet::bind
