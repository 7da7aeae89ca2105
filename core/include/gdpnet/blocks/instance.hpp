// The table of functions for vectors of N numbers: included where they are compiled for a CPU.
#pragma once

#include "gdpnet/blocks/derivative.hpp"
#include "gdpnet/blocks/kernels.hpp"
#include "gdpnet/blocks/path.hpp"

namespace gdpnet::blocks {

template <int N>
Index vectors(const Shape& shape) {
    Work<N> work;
    return lay_out<N>(shape, nullptr, work);
}

template <int N>
constexpr Kernels kernels_of() {
    return {N, vectors<N>, solve<N>, vjp<N>};
}

}  // namespace gdpnet::blocks
