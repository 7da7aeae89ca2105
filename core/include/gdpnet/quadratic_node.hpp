// The quadratic program as a node of the search: rows and bounds come and go with its levels.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "gdpnet/units.hpp"

namespace gdpnet {

class QuadraticNode {
public:
    explicit QuadraticNode(const Rows& rows) : rows(rows), q(rows), units(rows) {}

    const Rows& rows;
    Quadratic q;
    Units units;

    // The program of the root, but for its centres and its first point: bounds and global rows.
    void begin();

    bool enforce(Index code) {
        touch();
        q.enforce(code);
        return true;
    }

    // The side of a split at a fractional value. False if it is empty.
    bool split(Index column, double value, bool up);

    void save(Index level);
    void restore(Index level);

    // The same besides the stack, for something that is tried.
    void keep_aside() { save(aside_); }
    void take_back() { restore(aside_); }

    long take_effort() {
        const long spent = q.effort;
        q.effort = 0;
        return spent;
    }

    bool row_holds(Index i) const { return units.row_holds(q, i); }

    // The most fractional whole-number column of z, -1 if there is none.
    Index fractional() const;

protected:
    void touch() { untouched_ = -1; }  // the node is no longer the one that was saved

private:
    struct Level {
        Quadratic::Saved saved;
        std::vector<double> lower, upper;
    };
    void save(Level& kept) const;
    void restore(const Level& kept);

    Level aside_;
    std::vector<Level> levels_;  // made when first reached
    Index untouched_ = -1;       // the level that was saved last, as long as nothing has changed
};

}  // namespace gdpnet
