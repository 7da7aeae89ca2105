// The compiled core as a Python module. One source, several variants: see CMakeLists.txt.
#include "bind/bind.hpp"

#ifndef GDPNET_MODULE
#define GDPNET_MODULE _native
#endif

NB_MODULE(GDPNET_MODULE, module) {
    using namespace gdpnet::bind;
    module.doc() = "The compiled core of gdpnet: arrays in, arrays out.";
    bind_build(module);
    bind_component(module);
    bind_tape(module);
    bind_judge(module);
    bind_exact(module);
    bind_quadratic(module);
    bind_extended(module);
    bind_band(module);
    bind_blocks(module);
}
