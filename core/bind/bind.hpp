// The parts of the module, each in a file of its own.
#pragma once

#include <nanobind/nanobind.h>

namespace gdpnet::bind {

void bind_build(nanobind::module_& module);
void bind_cpu(nanobind::module_& module);
void bind_checks(nanobind::module_& module);
void bind_component(nanobind::module_& module);
void bind_tape(nanobind::module_& module);
void bind_exact(nanobind::module_& module);
void bind_found(nanobind::module_& module);
void bind_quadratic(nanobind::module_& module);
void bind_extended(nanobind::module_& module);
void bind_band(nanobind::module_& module);
void bind_blocks(nanobind::module_& module);
void bind_judge(nanobind::module_& module);

}  // namespace gdpnet::bind
