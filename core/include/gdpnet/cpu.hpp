// What the CPU can do beyond what every one of its kind can.
//
// Parts that gain by it are compiled several times from one source, and the widest that the CPU has is
// taken. Answers are the same in all of them.
#pragma once

#include <array>

namespace gdpnet {

enum class Cpu { baseline, avx2, avx512 };

inline constexpr std::array kCpus{Cpu::baseline, Cpu::avx2, Cpu::avx512};  // narrow to wide

const char* name(Cpu cpu);
bool built(Cpu cpu);      // whether this build has it
bool supported(Cpu cpu);  // whether the CPU at hand has it

// The one in use: the widest that is built and supported, until another is chosen.
Cpu chosen_cpu();
void choose_cpu(Cpu cpu);

}  // namespace gdpnet
