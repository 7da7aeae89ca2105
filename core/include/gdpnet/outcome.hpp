// What becomes of a node's program.
#pragma once

namespace gdpnet {

enum class Outcome { optimal, infeasible, cutoff, trouble };

}  // namespace gdpnet
