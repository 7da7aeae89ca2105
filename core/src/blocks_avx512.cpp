// The interior-point method in registers of eight numbers: AVX-512.
#include "gdpnet/blocks/instance.hpp"

namespace gdpnet::blocks {

const Kernels kAvx512 = kernels_of<Lanes<8, 1>>();

}  // namespace gdpnet::blocks
