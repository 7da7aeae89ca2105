#include "bind/bind.hpp"

namespace gdpnet::bind {

void bind_extended(nanobind::module_&) {}

}  // namespace gdpnet::bind
