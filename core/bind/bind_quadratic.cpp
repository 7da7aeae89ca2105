#include "bind/bind.hpp"

namespace gdpnet::bind {

void bind_quadratic(nanobind::module_&) {}

}  // namespace gdpnet::bind
