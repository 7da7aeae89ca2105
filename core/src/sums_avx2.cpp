// Sums in registers of four numbers: AVX2.
#include "gdpnet/sums_instance.hpp"

namespace gdpnet {

const Sums kAvx2Sums = sums_of<blocks::Lanes<4, 1>>();

}  // namespace gdpnet
