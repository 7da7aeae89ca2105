// What the module says of itself: gdpnet.core compares the version with the package's, `gdpnet doctor` shows both.
#include "bind/bind.hpp"

namespace gdpnet::bind {

void bind_build(nanobind::module_& module) {
    module.attr("VERSION") = GDPNET_VERSION;    // of the package that it was built for
    module.attr("COMPILER") = GDPNET_COMPILER;  // name and version
}

}  // namespace gdpnet::bind
