// A search that has not come far by itself: its rules are taken apart, and it goes on with what that proves.
#include <algorithm>
#include <cmath>

#include "gdpnet/exact.hpp"

namespace gdpnet {

namespace {

constexpr Index kMostColumns = 64, kLeastColumns = 16;  // of a part: the first try, and the last
constexpr int kRounds = 20;                             // of multipliers
constexpr double kWorthARound = 0.01;                   // of the gap, that the next multipliers have to promise
constexpr Index kDiveNodes = 50;                        // of a search in which all that the parts chose is chosen

// Multipliers of the rows in a program that is solved.
std::vector<double> multipliers_of(const Linear& linear) {
    std::vector<double> found(std::size_t(linear.m), 0.0);
    for (Index p = 0; p < linear.n; ++p) {
        const Index code = linear.nonbasic[p] - linear.n;
        if (code >= 0 && code < linear.m) found[code] = linear.reduced[p];
    }
    return found;
}

// Parts of one size, and the multipliers that raise their bound.
class Raised {
public:
    Raised(Parts& parts, const Sample& sample, const std::vector<double>& at_root, Watch& watch)
        : parts_(parts), sample_(sample), at_root_(at_root), watch_(watch) {}

    double best = -kInfinity;

    // Looks for multipliers, until the bound is `incumbent` or hardly rises. False where the parts are of no use.
    bool raise(double incumbent) {
        parts_.solve(at_, watch_);
        grow();
        if (parts_.failed) return false;
        bundle_.reach = first_reach(incumbent);
        for (int round = 0; round < kRounds && bundle_.reach > 0.0 && !parts_.hard && !watch_.over(0); ++round) {
            bundle_.cuts = parts_.cuts();
            const double expected = bundle_.propose(at_);
            if (!(expected - best > kWorthARound * (incumbent - best))) break;
            const double found = parts_.solve(at_, watch_);
            if (parts_.failed) return false;
            if (!(found > best)) {
                bundle_.reach *= 0.5;
                continue;
            }
            if (found - best > 0.5 * (expected - best)) bundle_.reach *= 2.0;
            best = found;
            bundle_.centre = at_;
            grow();
            if (parts_.failed) return false;
        }
        // The last points are those of the best multipliers.
        at_ = bundle_.centre;
        best = parts_.solve(at_, watch_);
        return !parts_.failed && best > -kInfinity;
    }

private:
    // Takes in what is broken at the points of the best multipliers.
    void grow() {
        while (!parts_.failed && parts_.grow()) {
            for (std::size_t c = at_.size(); c < parts_.coupling.size(); ++c)
                at_.push_back(best > -kInfinity ? 0.0 : at_root_[parts_.coupling[c]]);
            const double found = parts_.solve(at_, watch_);
            if (best > -kInfinity) best = found;
        }
        if (best == -kInfinity) best = parts_.solve(at_, watch_);
        bundle_.centre = at_;
        bundle_.parts = parts_.count();
        bundle_.right.clear();
        bundle_.free.clear();
        for (Index i : parts_.coupling) {
            bundle_.right.push_back(sample_.row[i].rhs);
            bundle_.free.push_back(sample_.row[i].equality);
        }
    }

    // How far a step goes that would close the gap if the bound rose as it does here.
    double first_reach(double incumbent) const {
        double squares = 0.0, largest = 0.0;
        for (Index i : parts_.coupling) {
            const double excess = std::abs(parts_.excess(i));
            squares += excess * excess;
            largest = std::max(largest, excess);
        }
        if (squares == 0.0) return 0.0;
        const double gap = incumbent < kInfinity ? incumbent - best : std::max(1.0, std::abs(best));
        return gap / squares * largest;
    }

    Parts& parts_;
    const Sample& sample_;
    const std::vector<double>& at_root_;  // by row
    Watch& watch_;
    Bundle bundle_;
    std::vector<double> at_;  // multipliers, by coupling row
};

}  // namespace

// The search that follows is a whole one: it starts at the root, with the incumbent, and with penalties by parts.
Finish Search::by_parts(Workspace& work, const Batch& batch, Index s, const Limits& limits, Effort& effort, Watch& watch) const {
    const Rows& rows = component_.rows;
    Nearest& nearest = work.nearest;
    const auto begin = [&] {
        work.assignment.begin(batch.active[s]);
        work.linear.start(rows.lower, rows.upper, batch.yhat[s], batch.weights);
        return enforce_globals(work);
    };
    const auto proved = [&] {
        return nearest.distance < kInfinity && nearest.distance - nearest.floor <= kImprovement * std::max(1.0, std::abs(nearest.distance));
    };
    std::unique_ptr<Parts> parts;
    Penalties penalties;
    begin();
    const bool solved = work.linear.solve(kInfinity) == Outcome::optimal;
    const std::vector<double> at_root = multipliers_of(work.linear);
    watch.go_by_parts(true);
    for (Index most = kMostColumns; solved && most >= kLeastColumns && !watch.over(0); most /= 2) {
        parts = std::make_unique<Parts>(component_, work.sample, work.assignment, batch.yhat[s], batch.weights, most);
        Raised raised(*parts, work.sample, at_root, watch);
        const bool useful = raised.raise(nearest.distance);
        effort.opened += parts->nodes;
        nearest.floor = std::max(nearest.floor, raised.best);
        if (!useful) break;
        if (parts->hard && most / 2 >= kLeastColumns) continue;
        parts->nodes = 0;
        bool alive = begin();
        for (Index k = 0; k < component_.logic.booleans() && alive; ++k)
            if (parts->choice[k] == 1 || (parts->choice[k] == -1 && component_.logic.tied[k]))
                alive = work.assignment.choose(work.linear, parts->choice[k] * (k + 1));
        Effort dive;
        nearest.go_on(kDiveNodes);
        search(work.linear, work.assignment, work.stack, nearest, watch, dive, alive);
        if (!proved()) penalties = parts->penalties(raised.best, nearest.distance - raised.best, watch);
        effort.opened += dive.opened + parts->nodes;
        break;
    }
    watch.go_by_parts(false);
    if (nearest.trouble) return Finish::stopped;
    if (proved()) return Finish::complete;
    penalties.together = [&](Index p, const std::vector<Index>& literals, double worth) {
        return parts->penalty(p, literals, worth, watch);
    };
    const bool alive = begin();
    effort.done = 0.0;
    nearest.go_on(limits.nodes, penalties.parts > 0 ? &penalties : nullptr);
    const Finish finish = search(work.linear, work.assignment, work.stack, nearest, watch, effort, alive);
    nearest.go_on(limits.nodes);
    return finish;
}

}  // namespace gdpnet
