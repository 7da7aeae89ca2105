// Sums in registers of two numbers, which every CPU has.
#include "gdpnet/sums_instance.hpp"

namespace gdpnet {

const Sums kBaselineSums = sums_of<blocks::Lanes<2, 2>>();

const Sums& sums() {
#if defined(GDPNET_WIDE)
    if (chosen_cpu() != Cpu::baseline) return kAvx2Sums;
#endif
    return kBaselineSums;
}

}  // namespace gdpnet
