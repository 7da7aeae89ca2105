// The table of functions for one kind of lanes: included where they are compiled for a CPU.
#pragma once

#include "gdpnet/blocks/derivative.hpp"
#include "gdpnet/blocks/kernels.hpp"
#include "gdpnet/blocks/path.hpp"

namespace gdpnet::blocks {

template <class V>
Index vectors(const Shape& shape) {
    Work<V> work;
    return lay_out<V>(shape, nullptr, work);
}

template <class V>
constexpr Kernels kernels_of() {
    return {V::kLanes, vectors<V>, solve<V>, vjp<V>};
}

}  // namespace gdpnet::blocks
