#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>

#include "bind/bind.hpp"
#include "gdpnet/cpu.hpp"

namespace nb = nanobind;

namespace gdpnet::bind {

void bind_cpu(nb::module_& module) {
    module.def(
        "cpu_variants",
        [] {
            std::vector<std::string> names;
            for (Cpu cpu : kCpus)
                if (built(cpu) && supported(cpu)) names.push_back(name(cpu));
            return names;
        },
        "Variants that this build has and the CPU can run, narrow to wide.");
    module.def("cpu_variant", [] { return std::string(name(chosen_cpu())); }, "The variant in use.");
    module.def(
        "use_cpu_variant",
        [](const std::string& wanted) {
            for (Cpu cpu : kCpus) {
                if (wanted != name(cpu)) continue;
                if (!built(cpu)) throw nb::value_error("this build of gdpnet has no such variant");
                if (!supported(cpu)) throw nb::value_error("this CPU does not have these instructions");
                choose_cpu(cpu);
                return;
            }
            throw nb::value_error("expected 'baseline', 'avx2' or 'avx512'");
        },
        nb::arg("name"), "Takes one of the variants; ValueError where it cannot be had.");
}

}  // namespace gdpnet::bind
