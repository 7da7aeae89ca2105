#include <cmath>
#include <limits>

#include "check.hpp"
#include "gdpnet/judge.hpp"
#include "gdpnet/tape.hpp"

using namespace gdpnet;

TEST("a tape writes activity, right sides and coefficients") {
    // x0, x1, 2.0, x0 + x1, x1 <= 2.0, max(x0, x1)
    Tape tape;
    tape.inputs = 2;
    tape.lines = {{Operation::input, 0, 0, 0, 0.0},      {Operation::input, 1, 0, 0, 0.0}, {Operation::number, 0, 0, 0, 2.0},
                  {Operation::sum, 0, 1, 0, 0.0},        {Operation::less_equal, 1, 2, 0, 0.0}, {Operation::max, 0, 1, 0, 0.0}};
    tape.bound = {1.0, -1.0};
    tape.bound_terms = {{1, 3, 0.5}};
    tape.varying = Table<double>(1, 2, 3.0);
    tape.varying_terms = {{1, 5, -1.0}};
    tape.clause_start = {0, 0, 1};
    tape.clause_register = {4};
    tape.price = {0.25, 4.0};
    tape.price_terms = {{1, 0, -1.0}};
    const double x[] = {1.0, 2.0, 5.0, 3.0};
    bool active[4];
    double bound[4], varying[4], price[4];
    CHECK(!tape.instantiate({x, 2, 2}, {active, 2, 2}, {bound, 2, 2}, {varying, 2, 1, 2}, {price, 2, 2}));
    CHECK(price[0] == 0.25 && price[1] == 3.0 && price[2] == 0.25 && price[3] == -1.0);  // which is no price
    tape.price[1] = 6.0;
    CHECK(tape.instantiate({x, 2, 2}, {active, 2, 2}, {bound, 2, 2}, {varying, 2, 1, 2}, {price, 2, 2}));
    CHECK(price[1] == 5.0 && price[3] == 1.0);
    CHECK(active[0] && active[1] && active[2] && !active[3]);
    CHECK(bound[0] == 1.0 && bound[1] == 0.5 && bound[2] == 1.0 && bound[3] == 3.0);
    CHECK(varying[0] == 3.0 && varying[1] == 1.0 && varying[2] == 3.0 && varying[3] == -2.0);
    const double unusable[] = {1.0, std::numeric_limits<double>::infinity()};
    CHECK(!tape.instantiate({unusable, 1, 2}, {active, 1, 2}, {bound, 1, 2}, {varying, 1, 1, 2}, {price, 1, 2}));
}

TEST("a judge measures rules at points") {
    // y0 <= 3 or y0 >= 7; y0 + y1 <= 10 always.
    Judge judge;
    judge.shared = Table<double>(3, 2);
    judge.shared.values = {1.0, 0.0, -1.0, 0.0, 1.0, 1.0};
    judge.largest = {1.0, 1.0, 1.0};
    judge.place = {-1, -1, -1};
    judge.equality = {0, 0, 0};
    judge.boolean_rows = {{0, 1, 2}, {0, 1}};
    judge.nested_booleans = {{0}, {}};
    judge.rule_booleans = {{0, 2}, {0, 1}};
    judge.global_rows = {2};
    judge.lower = {0.0, 0.0};
    judge.upper = {9.0, 9.0};
    judge.integer = {0, 0};
    const Index samples[] = {0, 1, 2};
    const double bound[] = {3, -7, 10, 3, -7, 10, 3, -7, 10}, y[] = {2, 1, 4.5, 0, 8, 5};
    const bool active[] = {true, true, true};
    std::int8_t assignment[6];
    double violation[3];
    bool holds[3];
    judge({samples, {bound, 3, 3}, {nullptr, 3, 0, 2}, {active, 3, 1}, {active, 3, 1}, {y, 3, 2}, 1e-6, {assignment, 3, 2},
           {violation, 3, 1}, holds});
    CHECK(holds[0] && !holds[1] && !holds[2]);
    CHECK(violation[0] == 0.0 && violation[2] == 0.0);
    CHECK_NEAR(violation[1], 2.5 / 7.0, 1e-15);
    CHECK(assignment[0] == 1 && assignment[1] == 0 && assignment[2] == 0 && assignment[3] == 0 && assignment[5] == 1);
}
