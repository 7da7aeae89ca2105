// The interior-point method for vectors of 8 numbers: AVX-512.
#include "gdpnet/blocks/instance.hpp"

namespace gdpnet::blocks {

const Kernels kAvx512 = kernels_of<8>();

}  // namespace gdpnet::blocks
