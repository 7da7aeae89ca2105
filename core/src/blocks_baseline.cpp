// The interior-point method for vectors of 2 numbers: what every CPU has.
#include "gdpnet/blocks/instance.hpp"

namespace gdpnet::blocks {

const Kernels kBaseline = kernels_of<2>();

}  // namespace gdpnet::blocks
