// A batch of predictions projected onto the rules of one component: each is accepted as it is, or searched for.
#pragma once

#include "gdpnet/accept.hpp"
#include "gdpnet/given.hpp"
#include "gdpnet/nearest.hpp"
#include "gdpnet/parts.hpp"
#include "gdpnet/threads.hpp"
#include "gdpnet/within.hpp"

namespace gdpnet {

// What became of a sample.
enum class Status : std::int8_t { solved, no_solution, limited, numerical, accepted };

// How a column got its value: it follows the prediction, is at a bound, is determined by the tight rows, or rests
// (an auxiliary that nothing moves, an integer where the prediction is).
enum class ColumnState : std::int8_t { follows, at_lower, at_upper, determined, rests };

// How a search ended, and what is proved then.
struct Conclusion {
    Status status;
    double bound;
};

// What `nearest`, whose best point costs `best`, concludes from how its search ended.
template <class AnyNearest>
Conclusion conclude(const AnyNearest& nearest, double best, Finish finish, Stack& stack) {
    if (nearest.trouble) return {Status::numerical, 0.0};
    if (finish == Finish::limited) return {Status::limited, nearest.lower_bound(stack)};
    if (best < kInfinity) return {Status::solved, best};
    return {Status::no_solution, kInfinity};
}

struct Limits {
    Index nodes = 0;         // for a sample
    double tolerance = 0.0;  // predictions that satisfy everything within it pass unchanged
    double lost = 0.0;       // see Sample::allow_rounding
    bool fine = false;       // see Sample::refine
    Index whole_columns = 64, whole_nodes = 200;  // rules of more columns are taken apart after so many nodes
};

struct Answers {
    Matrix<double> z;             // (B, n): the point, auxiliaries included; NaN where there is none
    Vector<double> distance;      // (B,): weighted l1 distance of its outputs, and prices; infinite where there is none
    Vector<double> bound;         // (B,): proved lower bound on that
    Vector<std::int8_t> status;   // (B,)
    Matrix<Truth> assignment;     // (B, booleans): 1 true, -1 false, 0 not asked for
    Vector<Index> nodes;          // (B,): linear programs of the search
};

// Whether all samples have a point that is proved nearest.
bool all_proved(const Answers& answers);

// The final dictionary of each sample, in the user's units.
struct Dictionaries {
    Matrix<std::int8_t> column_state;  // (B, n)
    Matrix<Index> column_source;       // (B, n): row with one entry that is a column's bound; -1 its own bound, -2 a split
    Matrix<Index> tight_rows;          // (B, n): that determine columns, -1 beyond their number
    Matrix<double> multipliers;        // (B, n): the distance falls by this per unit of b
    Matrix<double> reduced_costs;      // (B, n): rate of the distance in a column that is at a bound
};

// Products within a reach, for a batch.
struct ProductLists {
    Vector<Index> count;       // (B,); more than the room: there are more; -1: a program could not be solved
    Matrix<double> distance;   // (B, cap)
    Tensor<double> point;      // (B, cap, n)
    Tensor<Truth> assignment;  // (B, cap, booleans)
};

// Searches of one component. Calls may come from several threads at once.
class Search {
public:
    explicit Search(Component component) : component_(std::move(component)), taken_apart_(Parts::can(component_)) {}

    const Component& component() const { return component_; }

    // Projects all samples; `dictionaries` may be null.
    void project(const Batch& batch, const Limits& limits, const Answers& answers, const Dictionaries* dictionaries,
                 Threads threads, Call& call);

    // The cheapest sets of rules to leave out, for each sample.
    SetsOfBatch cheapest(const Batch& batch, const Droppable& rules, Index nodes, Threads threads, Call& call);

    // Lists the products whose nearest point is at most `reach` (B,) away.
    void products(const Batch& batch, Vector<const double> reach, const ProductLists& lists, Call& call);

private:
    // Memory of one thread; nothing is allocated for a sample or a node.
    struct Workspace {
        explicit Workspace(const Component& component)
            : sample(component.rows), linear(sample), assignment(component), stack(component), nearest(linear, assignment) {}
        Sample sample;
        Linear linear;
        Assignment assignment;
        Stack stack;
        Nearest nearest;
    };

    void one(Workspace& work, const Batch& batch, Index s, const Limits& limits, const Answers& answers,
             const Dictionaries* dictionaries, Watch& watch) const;
    void cheapest_of(Workspace& work, const Batch& batch, Index s, const Droppable& rules, Index nodes,
                     CheapestSets& found, Watch& watch) const;
    Finish by_parts(Workspace& work, const Batch& batch, Index s, const Limits& limits, Effort& effort, Watch& watch) const;
    bool enforce_globals(Workspace& work) const;
    void read_dictionary(const Workspace& work, Index s, const Dictionaries& dictionaries) const;

    Component component_;
    const bool taken_apart_;  // whether its rules may be
    Pool<Workspace> pool_;
};

}  // namespace gdpnet
