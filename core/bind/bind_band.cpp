#include "bind/bind.hpp"

namespace gdpnet::bind {

void bind_band(nanobind::module_&) {}

}  // namespace gdpnet::bind
