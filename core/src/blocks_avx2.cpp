// The interior-point method for vectors of 4 numbers: AVX2.
#include "gdpnet/blocks/instance.hpp"

namespace gdpnet::blocks {

const Kernels kAvx2 = kernels_of<4>();

}  // namespace gdpnet::blocks
