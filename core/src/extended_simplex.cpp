#include "gdpnet/extended/simplex.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "gdpnet/tolerances.hpp"

namespace gdpnet::extended {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// What leaves the basis.
struct Leaving {
    Small id = -1;               // -1: nothing is violated
    double move = 0.0;           // how its value, or its slack, has to change
    double target = 0.0;         // value a column moves to
    double step_cap = kInfinity; // dual step at which a column changes its cost piece instead
};

// The most violated basic column or enforced row (`bland`: the one of lowest id). A basic column is violated
// outside of its box, or beyond the kink that ends its cost piece.
Leaving choose_leaving(const Dictionary& dic, const SparseRows& rows, bool bland) {
    Leaving leaving;
    double worst = 0.0;
    for (Index k = 0; k < dic.basics; ++k) {
        const Small j = dic.basic[k];
        const double x = dic.value[j], lo = dic.lower[j], up = dic.upper[j];
        const double tolerance = kFeasibility * std::max(1.0, std::abs(x));
        const double slope = dic.slope[j], kink = dic.kink[j];
        double size = 0.0, goal = 0.0, cap = kInfinity;
        // On the way to a bound beyond the kink the column first has to change its piece there.
        if (slope > 0.0 && kink > lo && x <= up + tolerance) {
            if (x < kink - tolerance) size = kink - x, goal = std::min(kink, up), cap = 2.0 * slope;
        } else if (slope < 0.0 && kink < up && x >= lo - tolerance) {
            if (x > kink + tolerance) size = x - kink, goal = std::max(kink, lo), cap = -2.0 * slope;
        } else if (x < lo - tolerance) {
            size = lo - x, goal = lo;
        } else if (x > up + tolerance) {
            size = x - up, goal = up;
        }
        if (size > worst || (bland && size > 0.0 && j < leaving.id)) {
            leaving = {j, goal - x, goal, cap};
            worst = bland ? kInfinity : size;
        }
    }
    if (bland && leaving.id >= 0) return leaving;
    const double* z = dic.value.data();
    for (const Small i : dic.enforced) {
        if (dic.tight[std::size_t(i)]) continue;
        const double excess = rows.excess(i, z);
        const double size = rows.equality[i] ? std::abs(excess) : excess;
        if (size > rows.tolerance[i] && (size > worst || (bland && id_of_row(i) < leaving.id))) {
            leaving.id = id_of_row(i);
            leaving.move = excess;
            leaving.step_cap = kInfinity;
            worst = bland ? kInfinity : size;
        }
    }
    return leaving;
}

// Writes into `alpha` how the slack of a row changes with each nonbasic quantity.
void slack_line(Dictionary& dic, const SparseRows& rows, Index i) {
    const Index n = dic.n;
    double* alpha = dic.alpha.data();
    std::fill(alpha, alpha + n, 0.0);
    for (Index e = rows.start[i]; e < rows.start[i + 1]; ++e) {
        const double a = -rows.coefficient[e];
        const Index place = dic.place[rows.column[e]];
        if (place < 0) {
            alpha[-1 - place] += a;
        } else {
            const double* line = dic.line(place);
            for (Index p = 0; p < n; ++p) alpha[p] += a * line[p];
        }
    }
}

// Prepares the ratio test: what each nonbasic quantity charges for moving the right way. `size` is the gain per
// unit move (0 if it cannot move), `price` the cost per unit move, `room` the way to the breakpoint where the
// cost changes, `further` the way from there to the next one.
void price_positions(Dictionary& dic, const SparseRows& rows, double direction) {
    for (Index p = 0; p < dic.n; ++p) {
        dic.passed[p] = 0;
        dic.size[p] = 0.0;
        const double gain = dic.alpha[p] * direction, size = std::abs(gain);
        if (size <= kNoPivot) continue;
        dic.further[p] = 0.0;
        const Small j = dic.nonbasic[p];
        const double reduced = dic.reduced[p];
        if (is_row(j)) {
            if (gain > 0.0 && !rows.equality[row_of(j)]) {
                dic.size[p] = size;
                dic.price[p] = std::max(reduced, 0.0);
                dic.room[p] = kInfinity;
            }
            continue;
        }
        const double x = dic.value[j], kink = dic.kink[j], weight = dic.weight[j];
        const double lo = dic.lower[j], up = dic.upper[j];
        if (gain > 0.0) {
            if (x >= up) continue;
            dic.size[p] = size;
            if (x < kink) {
                dic.price[p] = std::max(reduced - weight, 0.0);
                dic.room[p] = std::min(kink, up) - x;
                if (kink < up) dic.further[p] = up - kink;
            } else {
                dic.price[p] = std::max(reduced + weight, 0.0);
                dic.room[p] = up - x;
            }
        } else if (x > lo) {
            dic.size[p] = size;
            if (x > kink) {
                dic.price[p] = std::max(-reduced - weight, 0.0);
                dic.room[p] = x - std::max(kink, lo);
                if (kink > lo) dic.further[p] = kink - lo;
            } else {
                dic.price[p] = std::max(-reduced + weight, 0.0);
                dic.room[p] = x - lo;
            }
        }
    }
}

enum class Test { enter, no_candidate, change_piece };

struct Entering {
    Test outcome;
    Index position;
    double violation;  // what is left of it
};

// The candidate that is first in order of price per gain; -1 where there is none.
Index next_candidate(const Dictionary& dic, bool lowest_id) {
    const double slack = lowest_id ? 0.0 : kDualSlack;
    double limit = kInfinity;
    for (Index p = 0; p < dic.n; ++p) {
        const double size = dic.size[p];
        if (size > 0.0 && dic.price[p] + slack < limit * size) limit = (dic.price[p] + slack) / size;
    }
    if (!(limit < kInfinity)) return -1;
    Index best = -1;
    double best_size = 0.0;
    for (Index p = 0; p < dic.n; ++p) {
        const double size = dic.size[p];
        if (size > 0.0 && dic.price[p] <= limit * size) {
            if (lowest_id) {
                if (best < 0 || dic.nonbasic[p] < dic.nonbasic[best]) best = p;
            } else if (size > best_size) {
                best = p;
                best_size = size;
            }
        }
    }
    return best;
}

// The dual step that closes `violation`: long step, Harris tolerance, largest pivot.
//
// Candidates are passed in order of price per gain. One whose whole way to its next breakpoint does not close
// the violation is passed by (counted in `passed`); the first that does enters. `forgiven` is what may be missing
// when all candidates have been passed: then the last one enters all the same and ends beyond its bound by a
// rounding error.
Entering ratio_test(Dictionary& dic, double violation, double forgiven, double step_cap, bool lowest_id) {
    double step = 0.0;
    Index last = -1;
    double last_room = 0.0;
    while (true) {
        const Index best = next_candidate(dic, lowest_id);
        if (best < 0) {
            if (step_cap < kInfinity) return {Test::change_piece, -1, violation};
            if (violation > forgiven || last < 0) return {Test::no_candidate, -1, violation};
            --dic.passed[last];
            return {Test::enter, last, violation + last_room};
        }
        step = std::max(dic.price[best] / dic.size[best], step);
        if (step >= step_cap) return {Test::change_piece, -1, violation};
        const double room = dic.size[best] * dic.room[best];
        if (room >= violation) return {Test::enter, best, violation};
        violation -= room;
        last = best;
        last_room = room;
        ++dic.passed[best];
        if (dic.further[best] > 0.0) {  // on to its bound, at a price higher by twice its weight
            dic.room[best] = dic.further[best];
            dic.further[best] = 0.0;
            dic.price[best] += 2.0 * dic.weight[dic.nonbasic[best]];
        } else {
            dic.size[best] = 0.0;
        }
    }
}

// Moves the columns that the ratio test passed by to the breakpoints they reached.
void move_passed(Dictionary& dic, double direction) {
    for (Index p = 0; p < dic.n; ++p) {
        if (dic.passed[p] == 0) continue;
        const Small j = dic.nonbasic[p];
        const double x = dic.value[j], kink = dic.kink[j];
        double target;
        if (dic.alpha[p] * direction > 0.0) {
            target = dic.upper[j];
            if (dic.passed[p] == 1 && x < kink) target = std::min(kink, target);
        } else {
            target = dic.lower[j];
            if (dic.passed[p] == 1 && x > kink) target = std::max(kink, target);
        }
        dic.move_nonbasic(p, j, target);
    }
}

// Exchanges the leaving quantity with the nonbasic one at position q. `line` is that of a leaving column, -1 if a
// row's slack leaves; `move` is by how much the leaving quantity has to change.
void pivot(Dictionary& dic, Index line, Small leaving, Index q, double move, bool entering_moves_up) {
    const Index n = dic.n, r = dic.basics;
    const double* alpha = dic.alpha.data();
    double* reduced = dic.reduced.data();
    const double inverse = 1.0 / alpha[q];
    const Small entering = dic.nonbasic[q];
    move *= inverse;
    double entering_slope = 0.0;
    if (!is_row(entering)) {
        const double x = dic.value[entering], kink = dic.kink[entering], weight = dic.weight[entering];
        if (entering_moves_up) {
            entering_slope = x < kink ? -weight : weight;
        } else {
            entering_slope = x > kink ? weight : -weight;
        }
    }
    const double dual_step = (reduced[q] + entering_slope) * inverse;
    for (Index p = 0; p < n; ++p) reduced[p] -= dual_step * alpha[p];
    reduced[q] = dual_step - (is_row(leaving) ? 0.0 : dic.slope[leaving]);

    for (Index k = 0; k < r; ++k) {
        double* own = dic.line(k);
        double factor = own[q];
        if (k == line || factor == 0.0) continue;
        dic.value[dic.basic[k]] += factor * move;
        factor *= inverse;
        for (Index p = 0; p < n; ++p) own[p] -= factor * alpha[p];
        own[q] = factor;
    }

    if (!is_row(entering)) {
        const Index to = line < 0 ? dic.basics++ : line;
        double* own = dic.line(to);
        for (Index p = 0; p < n; ++p) own[p] = -alpha[p] * inverse;
        own[q] = inverse;
        dic.basic[to] = entering;
        dic.place[entering] = Small(to);
        dic.slope[entering] = entering_slope;
        dic.value[entering] += move;
    } else {
        dic.tight[std::size_t(row_of(entering))] = 0;
        if (line >= 0) {  // a slack replaces a basic column: its line goes, the last one takes its place
            const Index last = --dic.basics;
            if (line != last) {
                std::copy(dic.line(last), dic.line(last) + n, dic.line(line));
                dic.basic[line] = dic.basic[last];
                dic.place[dic.basic[line]] = Small(line);
            }
        }
    }
    dic.nonbasic[q] = leaving;
    if (is_row(leaving)) {
        dic.tight[std::size_t(row_of(leaving))] = 1;
    } else {
        dic.place[leaving] = Small(-1 - q);
        dic.slope[leaving] = 0.0;
    }
    ++dic.age;
}

// Lets a contradiction within rounding pass. False where it has been before.
bool forgive(Dictionary& dic, SparseRows& rows, const Leaving& leaving, double forgiven) {
    if (is_row(leaving.id)) {
        double& tolerance = rows.tolerance[row_of(leaving.id)];
        if (tolerance >= forgiven) return false;
        tolerance = forgiven;
    } else {
        (leaving.move > 0.0 ? dic.lower : dic.upper)[leaving.id] = dic.value[leaving.id];
    }
    return true;
}

// Whether the rows of the basis hold with equality.
bool is_tight(const Dictionary& dic, const SparseRows& rows) {
    for (Index p = 0; p < dic.n; ++p) {
        if (!is_row(dic.nonbasic[p])) continue;
        const Index i = row_of(dic.nonbasic[p]);
        if (std::abs(rows.excess(i, dic.value.data())) > kDrift * rows.tolerance[i]) return false;
    }
    return true;
}

}  // namespace

Optimisation dual_simplex(Dictionary& dic, SparseRows& rows, double cutoff, Watch& watch) {
    const Index n = dic.n;
    const Index patience = 20 + 4 * n;
    Index stalled = 0;
    double highest = -kInfinity;
    for (Index iteration = 0; iteration < 400 + 60 * n; ++iteration) {
        if (watch.over(long(n * (dic.basics + 8)))) return Optimisation::trouble;
        if (cutoff < kInfinity || stalled > 0 || iteration > 10) {
            const double objective = dic.dual_objective();
            if (objective >= cutoff) return Optimisation::cut_off;
            if (objective > highest + kRaised * std::max(1.0, std::abs(objective))) {
                highest = objective;
                stalled = 0;
            } else {
                ++stalled;
            }
        }
        const bool bland = stalled > patience;
        if (dic.age > kRefactorAge && !refactor(dic, rows)) return Optimisation::trouble;

        const Leaving leaving = choose_leaving(dic, rows, bland);
        if (leaving.id < 0) return Optimisation::optimal;
        Index line = -1;
        double magnitude;
        if (is_row(leaving.id)) {
            slack_line(dic, rows, row_of(leaving.id));
            magnitude = std::abs(rows.rhs[row_of(leaving.id)]);
        } else {
            line = dic.place[leaving.id];
            std::copy(dic.line(line), dic.line(line) + n, dic.alpha.data());
            magnitude = std::abs(leaving.target);
        }
        double direction = leaving.move >= 0.0 ? 1.0 : -1.0;
        if (leaving.step_cap < kInfinity) direction = dic.slope[leaving.id] > 0.0 ? 1.0 : -1.0;
        price_positions(dic, rows, direction);
        const double forgiven = kAccepted * std::max(1.0, magnitude);
        const Entering found = ratio_test(dic, std::abs(leaving.move), forgiven, leaving.step_cap, bland);

        const bool doubtful = found.outcome == Test::no_candidate ||
                              (found.outcome == Test::enter && std::abs(dic.alpha[found.position]) < kSmallPivot);
        if (doubtful && dic.age > 0) {
            if (!refactor(dic, rows)) return Optimisation::trouble;
            continue;
        }
        if (found.outcome == Test::no_candidate) {
            if (found.violation > forgiven) return Optimisation::infeasible;
            if (!forgive(dic, rows, leaving, forgiven)) return Optimisation::trouble;
            continue;
        }
        move_passed(dic, direction);
        if (found.outcome == Test::enter) {
            const bool up = dic.alpha[found.position] * direction > 0.0;
            pivot(dic, line, leaving.id, found.position, direction * found.violation, up);
            if (!is_row(leaving.id)) dic.value[leaving.id] = leaving.target;
        } else {
            const double change = -2.0 * dic.slope[leaving.id];
            dic.slope[leaving.id] += change;
            for (Index p = 0; p < n; ++p) dic.reduced[p] += change * dic.alpha[p];
        }
    }
    return Optimisation::trouble;
}

Optimisation settle(Dictionary& dic, SparseRows& rows, double cutoff, Watch& watch) {
    for (int attempt = 0; attempt < 4; ++attempt) {
        if (attempt == 2) dic.reset_basis();
        const Optimisation outcome = dual_simplex(dic, rows, cutoff, watch);
        if (outcome == Optimisation::optimal) {
            if (dic.age == 0 || is_tight(dic, rows)) return outcome;
            if (!refactor(dic, rows)) dic.reset_basis();
        } else if (outcome != Optimisation::trouble) {
            return outcome;
        }
        if (watch.interrupted()) break;
    }
    return Optimisation::trouble;
}

}  // namespace gdpnet::extended
