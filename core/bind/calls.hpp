// A call from Python: without the interpreter's lock, but answering Ctrl-C.
#pragma once

#include <nanobind/nanobind.h>

#include <limits>

#include "gdpnet/threads.hpp"
#include "gdpnet/watch.hpp"

namespace gdpnet::bind {

// Asks the interpreter for signals; only its main thread ever gets one.
inline bool signalled() {
    nanobind::gil_scoped_acquire lock;
    return PyErr_CheckSignals() != 0;
}

// Runs `work(call)` without the lock and raises what a signal's handler raised meanwhile.
template <class Work>
void interruptible(double time_limit, Work work, double patience = std::numeric_limits<double>::infinity()) {
    Call call;
    call.ask = signalled;
    call.time_limit = time_limit;
    call.patience = patience;
    {
        nanobind::gil_scoped_release unlock;
        work(call);
    }
    if (PyErr_Occurred()) throw nanobind::python_error();
}

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

}  // namespace gdpnet::bind
