#include "gdpnet/extended/simplex.hpp"

#include <algorithm>
#include <cmath>

#include "gdpnet/tolerances.hpp"

namespace gdpnet::extended {

namespace {

// What leaves the basis.
struct Leaving {
    Small id = -1;               // -1: nothing is violated
    double move = 0.0;           // how its value, or its slack, has to change
    double target = 0.0;         // value a column moves to
    double step_cap = kInfinity; // dual step at which a column changes its cost piece instead
};

// The violated basic column or enforced row that is worth most (`bland`: the one of lowest id). A basic column is
// violated outside of its box, or beyond the kink that ends its cost piece.
Leaving choose_leaving(const Dictionary& dic, const SparseRows& rows, const Pricing& pricing, bool bland) {
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
        if (size > 0.0 && (bland ? leaving.id < 0 || j < leaving.id : size * size > worst * pricing.of_column(j))) {
            leaving = {j, goal - x, goal, cap};
            worst = size * size / pricing.of_column(j);
        }
    }
    if (bland && leaving.id >= 0) return leaving;
    for (const Small i : dic.enforced) {
        if (dic.tight[std::size_t(i)]) continue;
        const double excess = pricing.excess(i);
        const double size = rows.equality[i] ? std::abs(excess) : excess;
        if (size <= rows.tolerance[i]) continue;
        if (bland ? leaving.id < 0 || id_of_row(i) < leaving.id : size * size > worst * pricing.of_row(i)) {
            leaving = {id_of_row(i), excess, 0.0, kInfinity};
            worst = size * size / pricing.of_row(i);
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

// Collects the candidates of the ratio test, whose entries are above `least`.
Index collect_candidates(const Dictionary& dic, double direction, double least, Candidate* found) {
    Index count = 0;
    for (Index p = 0; p < dic.n; ++p) {
        const double gain = dic.alpha[p] * direction;
        found[count].position = Small(p);
        found[count].size = std::abs(gain);
        count += gain > least ? dic.rises[p] : (gain < -least) & dic.falls[p];
    }
    for (Index c = 0; c < count; ++c) {
        Candidate& own = found[c];
        const Index p = own.position;
        const Small j = dic.nonbasic[p];
        const double sign = dic.alpha[p] * direction > 0.0 ? 1.0 : -1.0;
        double cost = sign * dic.reduced[p];
        own.room = kInfinity;
        own.further = 0.0;
        own.passed = 0;
        if (!is_row(j)) {
            const double x = dic.value[j], end = sign > 0.0 ? dic.upper[j] : dic.lower[j];
            own.room = std::abs(end - x);
            if (j < dic.outputs) {
                const double kink = dic.kink[j], weight = dic.weight[j];
                if (sign * x < sign * kink) {
                    cost -= weight;
                    if (sign * kink < sign * end) {
                        own.room = std::abs(kink - x);
                        own.further = std::abs(end - kink);
                    }
                } else {
                    cost += weight;
                }
            }
        }
        own.price = std::max(cost, 0.0);
    }
    return count;
}

enum class Test { enter, no_candidate, change_piece };

struct Entering {
    Test outcome;
    Index candidate;
    double violation;  // what is left of it
    bool passed;       // whether candidates were passed by
};

// The candidate that is first in order of price per gain; -1 where there is none.
Index next_candidate(const Dictionary& dic, const Candidate* found, Index count, bool lowest_id) {
    const double slack = lowest_id ? 0.0 : kDualSlack;
    double limit = kInfinity;
    Index tightest = -1;
    for (Index c = 0; c < count; ++c) {
        const double size = found[c].size, price = found[c].price + slack;
        if (!(size > 0.0 && price < limit * size)) continue;
        limit = price / size;
        tightest = c;
    }
    if (!(limit < kInfinity)) return -1;
    Index best = -1;
    double best_size = 0.0;
    for (Index c = 0; c < count; ++c) {
        const double size = found[c].size;
        if (!(size > 0.0) || found[c].price > limit * size) continue;
        if (lowest_id) {
            if (best < 0 || dic.nonbasic[found[c].position] < dic.nonbasic[found[best].position]) best = c;
        } else if (size > best_size) {
            best = c;
            best_size = size;
        }
    }
    return best < 0 ? tightest : best;  // whose own price, multiplied out again, may round above its limit
}

// The dual step that closes `violation`: long step, Harris tolerance, largest pivot.
//
// Candidates are passed in order of price per gain. One whose whole way to its next breakpoint does not close
// the violation is passed by (counted in `passed`); the first that does enters. `forgiven` is what may be missing
// when all candidates have been passed: then the last one enters all the same and ends beyond its bound by a
// rounding error.
Entering ratio_test(const Dictionary& dic, Candidate* found, Index count, double violation, double forgiven,
                    double step_cap, bool lowest_id) {
    double step = 0.0;
    Index last = -1;
    double last_room = 0.0;
    while (true) {
        const Index best = next_candidate(dic, found, count, lowest_id);
        if (best < 0) {
            if (step_cap < kInfinity) return {Test::change_piece, -1, violation, last >= 0};
            if (violation > forgiven || last < 0) return {Test::no_candidate, -1, violation, last >= 0};
            --found[last].passed;
            return {Test::enter, last, violation + last_room, true};
        }
        Candidate& own = found[best];
        step = std::max(own.price / own.size, step);
        if (step >= step_cap) return {Test::change_piece, -1, violation, last >= 0};
        const double room = own.size * own.room;
        if (room >= violation) return {Test::enter, best, violation, last >= 0};
        violation -= room;
        last = best;
        last_room = room;
        ++own.passed;
        if (own.further > 0.0) {  // on to its bound, at a price higher by twice its weight
            own.room = own.further;
            own.further = 0.0;
            own.price += 2.0 * dic.weight[dic.nonbasic[own.position]];
        } else {
            own.size = 0.0;
        }
    }
}

// Moves the columns that the ratio test passed by to the breakpoints they reached.
void move_passed(Dictionary& dic, const Candidate* found, Index count, double direction) {
    for (Index c = 0; c < count; ++c) {
        if (found[c].passed == 0) continue;
        const Index p = found[c].position;
        const Small j = dic.nonbasic[p];
        const double x = dic.value[j], kink = dic.kink[j];
        double target;
        if (dic.alpha[p] * direction > 0.0) {
            target = dic.upper[j];
            if (found[c].passed == 1 && x < kink) target = std::min(kink, target);
        } else {
            target = dic.lower[j];
            if (found[c].passed == 1 && x > kink) target = std::max(kink, target);
        }
        dic.move_nonbasic(p, j, target);
    }
}

// Exchanges the leaving quantity with the nonbasic one at position q. `line` is that of a leaving column, -1 if a
// row's slack leaves, `equality` whether that row is an equation; `move` is by how much the leaving quantity has to
// change, `target` the value that a leaving column gets.
void pivot(Dictionary& dic, Pricing& pricing, bool equality, Index line, Small leaving, Index q, double move,
           double target, bool entering_moves_up) {
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

    pricing.begin_pivot(leaving, inverse);
    if (line >= 0) pricing.moves(leaving, alpha[q]);
    if (!is_row(entering)) pricing.moves(entering, 1.0);
    for (Index k = 0; k < r; ++k) {
        double* own = dic.line(k);
        double factor = own[q];
        if (k == line || factor == 0.0) continue;
        const Small j = dic.basic[k];
        dic.value[j] += factor * move;
        pricing.moves(j, factor);
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
        dic.rises[q] = !equality;
        dic.falls[q] = false;
    } else {
        dic.place[leaving] = Small(-1 - q);
        dic.slope[leaving] = 0.0;
        dic.value[leaving] = target;
        dic.note_ways(q, leaving);
    }
    pricing.end_pivot(dic, entering, move);
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

}  // namespace

Optimisation dual_simplex(Simplex& simplex, SparseRows& rows, double cutoff, Watch& watch, const Care& care) {
    Dictionary& dic = simplex.dictionary;
    Pricing& pricing = simplex.pricing;
    Candidate* candidates = simplex.candidates.data();
    pricing.begin(dic, rows);
    const Index n = dic.n;
    const Index patience = 20 + 4 * n;
    Index stalled = 0;
    double highest = -kInfinity;
    for (Index iteration = 0; iteration < 400 + 60 * n; ++iteration) {
        if (watch.over(long(n * (dic.basics + 8)))) return Optimisation::trouble;
        if (cutoff < kInfinity || stalled > 0 || iteration > 10) {
            const double objective = dic.dual_objective();
            if (objective >= cutoff) {
                if (is_proved(proof(dic, rows, objective).bound, cutoff)) return Optimisation::cut_off;
                cutoff = kInfinity;
            }
            if (objective > highest + kRaised * std::max(1.0, std::abs(objective))) {
                highest = objective;
                stalled = 0;
            } else {
                ++stalled;
            }
        }
        const bool bland = stalled > patience;
        if (dic.age > care.age) {
            if (!refactor(dic, rows)) return Optimisation::trouble;
            pricing.recompute(dic, rows);
        }
        const Leaving leaving = choose_leaving(dic, rows, pricing, bland);
        if (leaving.id < 0) {
            if (pricing.fresh()) return Optimisation::optimal;
            pricing.recompute(dic, rows);
            continue;
        }
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
        const Index count = collect_candidates(dic, direction, care.least_pivot, candidates);
        const double forgiven = kAccepted * std::max(1.0, magnitude);
        const Entering found =
            ratio_test(dic, candidates, count, std::abs(leaving.move), forgiven, leaving.step_cap, bland);
        const Index q = found.candidate < 0 ? -1 : candidates[found.candidate].position;

        const bool doubtful = found.outcome == Test::no_candidate ||
                              (found.outcome == Test::enter && std::abs(dic.alpha[q]) < kSmallPivot);
        if (doubtful && dic.age > 0) {
            if (!refactor(dic, rows)) return Optimisation::trouble;
            pricing.recompute(dic, rows);
            continue;
        }
        if (found.outcome == Test::no_candidate) {
            if (found.violation > forgiven) {
                const bool proved = is_contradictory(dic, rows, leaving.id, leaving.target, direction);
                return proved ? Optimisation::infeasible : Optimisation::trouble;
            }
            if (!forgive(dic, rows, leaving, forgiven)) return Optimisation::trouble;
            continue;
        }
        if (found.passed) move_passed(dic, candidates, count, direction);
        if (found.outcome == Test::enter) {
            const bool up = dic.alpha[q] * direction > 0.0;
            const bool equality = is_row(leaving.id) && rows.equality[row_of(leaving.id)];
            pivot(dic, pricing, equality, line, leaving.id, q, direction * found.violation, leaving.target, up);
        } else {
            const double change = -2.0 * dic.slope[leaving.id];
            dic.slope[leaving.id] += change;
            for (Index p = 0; p < n; ++p) dic.reduced[p] += change * dic.alpha[p];
        }
        if (found.passed) pricing.recompute(dic, rows);
    }
    return Optimisation::trouble;
}

Optimisation settle(Simplex& simplex, SparseRows& rows, double cutoff, Watch& watch) {
    Dictionary& dic = simplex.dictionary;
    simplex.bound = -kInfinity;
    for (int attempt = 0; attempt < 4; ++attempt) {
        if (attempt >= 2) dic.reset_basis();
        const Optimisation outcome = dual_simplex(simplex, rows, cutoff, watch, attempt < 3 ? kUsual : kCareful);
        if (outcome == Optimisation::optimal) {
            const Proof found = proof(dic, rows, dic.dual_objective());
            if (found.tight && is_proved(found.bound, dic.distance())) return outcome;
            simplex.bound = std::max(simplex.bound, found.bound);
            if (!refactor(dic, rows)) dic.reset_basis();
        } else if (outcome != Optimisation::trouble) {
            return outcome;
        }
        if (watch.interrupted()) break;
    }
    return Optimisation::trouble;
}

}  // namespace gdpnet::extended
