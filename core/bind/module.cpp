// The compiled core as a Python module.
#include "bind/bind.hpp"

NB_MODULE(_native, module) {
    using namespace gdpnet::bind;
    module.doc() = "The compiled core of gdpnet: arrays in, arrays out.";
    // Rules that live as long as the process keep their part of the core; that is no leak.
    nanobind::set_leak_warnings(false);
    bind_build(module);
    bind_cpu(module);
    bind_checks(module);
    bind_component(module);
    bind_tape(module);
    bind_judge(module);
    bind_exact(module);
    bind_found(module);
    bind_quadratic(module);
    bind_extended(module);
    bind_band(module);
    bind_blocks(module);
}
