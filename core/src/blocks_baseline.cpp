// The interior-point method in registers of two numbers, which every CPU has.
#include "gdpnet/blocks/instance.hpp"

namespace gdpnet::blocks {

const Kernels kBaseline = kernels_of<Lanes<2, 2>>();

}  // namespace gdpnet::blocks
