#include "gdpnet/cpu.hpp"

#include <atomic>

namespace gdpnet {

namespace {

Cpu widest() {
    Cpu found = Cpu::baseline;
    for (Cpu cpu : kCpus)
        if (built(cpu) && supported(cpu)) found = cpu;
    return found;
}

std::atomic<Cpu>& chosen() {
    static std::atomic<Cpu> cpu{widest()};
    return cpu;
}

}  // namespace

const char* name(Cpu cpu) {
    switch (cpu) {
        case Cpu::avx512: return "avx512";
        case Cpu::avx2: return "avx2";
        default: return "baseline";
    }
}

#if defined(GDPNET_WIDE)
bool built(Cpu) { return true; }

bool supported(Cpu cpu) {
    switch (cpu) {
        case Cpu::avx512: return __builtin_cpu_supports("avx512f") != 0;
        case Cpu::avx2: return __builtin_cpu_supports("avx2") != 0;
        default: return true;
    }
}
#else
bool built(Cpu cpu) { return cpu == Cpu::baseline; }
bool supported(Cpu cpu) { return cpu == Cpu::baseline; }
#endif

Cpu chosen_cpu() { return chosen().load(std::memory_order_relaxed); }

void choose_cpu(Cpu cpu) { chosen().store(cpu, std::memory_order_relaxed); }

}  // namespace gdpnet
