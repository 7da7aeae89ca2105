// A bound by parts, and a first point from it.
//
// Rules that share no column can be searched one by one, and what their nearest points cost adds up. Rules of hundreds
// of outputs rarely fall apart as they are written, but those that matter do:
//
// - A rule that holds where the others leave its columns need not be looked at. So only clauses and global rows that
//   are broken take part; those that share columns are a part, which the search solves as a problem of its own; what
//   is broken at the points that this gives takes part from then on. Leaving out rules and rows enlarges the set, so
//   the sum of the parts' distances is a bound at any time, and where nothing is broken any more it is the distance.
// - A global row that would make a part too large couples the parts instead, at a price: for any multiplier u >= 0 (of
//   an equation: any u) and any point that satisfies `a z <= b`, `distance + u (a z - b) <= distance`. So the least of
//   the left side without the row is a bound (Lagrange), and it falls apart, since `u a z` is a cost of each column.
//   Multipliers are sought that make it large (bundle.hpp).
// - Clauses that would make a part too large are left out, and searches of parts that take too long count with what
//   they have proved.
//
// What a part costs more where one literal is chosen is a penalty. Those of different parts add up: in the sum nothing
// else changes. So the search that goes on knows a bound for any choice of literals, and is left with few.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "gdpnet/bundle.hpp"
#include "gdpnet/nearest.hpp"

namespace gdpnet {

// What a part is searched with: its own rows and clauses, of which it has copies.
struct PartSearch {
    explicit PartSearch(Component&& own)
        : component(std::move(own)),
          sample(component.rows),
          linear(sample),
          assignment(component),
          stack(component),
          nearest(linear, assignment) {}
    Component component;
    Sample sample;
    Linear linear;
    Assignment assignment;
    Stack stack;
    Nearest nearest;
};

class Parts {
public:
    // Of a sample that `sample` and `assignment` have been loaded with. `most`: columns of a part.
    Parts(const Component& component, const Sample& sample, const Assignment& assignment, Vector<const double> yhat,
          Vector<const double> weights, Index most);

    // Whether rules are of a kind that is taken apart.
    static bool can(const Component& component);

    std::vector<Index> coupling;  // the rows that couple parts
    std::vector<Truth> choice;    // by boolean of the component: what the parts have chosen, else 0
    Index nodes = 0;
    bool failed = false;          // a part has no solution, or could not be solved
    bool hard = false;            // the search of a part was not finished

    // Solves the parts with multipliers, by coupling row, and returns the bound that they give.
    double solve(const std::vector<double>& multipliers, Watch& watch);

    // Takes in what is broken at the parts' points. False if nothing is, or nothing can be taken in.
    bool grow();

    // How far a row is from what it says where the parts are.
    double excess(Index i) const { return sample_.excess(i, z_.data()); }

    // The linear functions of all points that solved the parts as they are; columns that are in no part are one more.
    std::vector<Cut> cuts() const;
    Index count() const { return Index(parts_.size()) + 1; }

    // What literals cost more with the last multipliers, which gave `bound`; `worth` at most.
    Penalties penalties(double bound, double worth, Watch& watch);

    // What part p costs more where several literals are chosen; `worth` at most.
    double penalty(Index p, const std::vector<Index>& literals, double worth, Watch& watch);

private:
    struct Part {
        std::vector<Index> columns, clauses, rows, booleans;  // of the component
        std::unique_ptr<PartSearch> search;
        std::vector<double> kink, weight, tilt;
        std::unique_ptr<bool[]> active;
        std::vector<std::vector<double>> points;  // that solved it
        std::map<std::vector<Index>, double> penalties;  // of several literals
        double value = 0.0;  // what it costs at least, tilts included
        bool solved = false;
    };

    void take_clauses();
    Index root(Index node);
    bool join(const std::vector<Index>& nodes);
    void form();
    void list_booleans(Part& part) const;
    void build(Part& part) const;
    void run(Part& part, Watch& watch);
    Finish search_part(Part& part, Vector<const Index> literals, double cutoff, Index node_limit, Watch& watch);
    double penalty(Part& part, Vector<const Index> literals, double worth, Watch& watch);
    bool set_tilts(const std::vector<double>& multipliers);
    double outside();
    void keep_point(std::vector<std::vector<double>>& points, std::vector<double>&& point) const;
    double cost(Index j) const;

    const Component& component_;
    const Sample& sample_;
    const Assignment& assignment_;
    Vector<const double> yhat_, weights_;
    const Index most_;
    std::vector<Slot> parent_, size_;               // of columns, and of booleans behind them; sizes in columns
    std::vector<std::vector<Index>> clause_nodes_;  // by clause: the columns and booleans it ties together
    Flags clause_in_, row_in_, left_;               // what takes part, by clause and row; clauses that are left out
    std::vector<double> z_, tilt_;                  // by column
    std::vector<Part> parts_;
    std::vector<std::vector<double>> outside_;      // points of the columns that are in no part, (n,)
    std::vector<Slot> boolean_at_;                  // by boolean: its place in its part
    std::vector<Slot> part_of_;                     // by column, -1 where it is in none
};

}  // namespace gdpnet
