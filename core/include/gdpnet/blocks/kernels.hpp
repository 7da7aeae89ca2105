// The interior-point method compiled for several CPUs: one table of functions for each.
//
// They differ in how many samples advance together, which changes no answer: all of them give the same,
// to the last bit.
#pragma once

#include "gdpnet/blocks/shape.hpp"
#include "gdpnet/cpu.hpp"

namespace gdpnet::blocks {

struct Kernels {
    Index lanes;
    Index (*vectors)(const Shape& shape);  // memory of a thread, in numbers for each lane
    void (*solve)(const Shape& shape, const Batch& batch, Index first, Index last, Points points, double* memory,
                  Stop stop);
    void (*vjp)(const Shape& shape, const Batch& batch, Index first, Index last, Adjoints adjoints, double* memory,
                Stop stop);
};

extern const Kernels kBaseline;
extern const Kernels kAvx2;    // only where `built(Cpu::avx2)`
extern const Kernels kAvx512;  // only where `built(Cpu::avx512)`

// Those of the CPU that was chosen.
const Kernels& kernels();

}  // namespace gdpnet::blocks
