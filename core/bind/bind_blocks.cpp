#include "bind/bind.hpp"

namespace gdpnet::bind {

void bind_blocks(nanobind::module_&) {}

}  // namespace gdpnet::bind
