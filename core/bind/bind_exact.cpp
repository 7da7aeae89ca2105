#include "bind/bind.hpp"

namespace gdpnet::bind {

void bind_exact(nanobind::module_&) {}

}  // namespace gdpnet::bind
