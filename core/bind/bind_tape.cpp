#include "bind/bind.hpp"

namespace gdpnet::bind {

void bind_tape(nanobind::module_&) {}

}  // namespace gdpnet::bind
