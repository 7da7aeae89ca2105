// The interior-point method in registers of four numbers: AVX2.
#include "gdpnet/blocks/instance.hpp"

namespace gdpnet::blocks {

const Kernels kAvx2 = kernels_of<Lanes<4, 1>>();

}  // namespace gdpnet::blocks
