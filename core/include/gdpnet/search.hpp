// The search: depth first over a stack of open nodes, warm from the parent's program.
//
// At a node some literals have been chosen and their rows are enforced. Its program is solved; a clause that
// needs a decision has its literals as children. Child i enforces literal i and *leaves out* literals 1..i-1,
// whose children have covered every solution in which they hold.
//
// The loop is here, once. What differs is in two types:
//
// A Node is the program at a node. It has
//     bool enforce(Index code)                          a row (code i), or its closed negation (m + i), joins; false on contradiction
//     bool split(Index column, double value, bool up)   the column goes to one side of a fractional value; false if that is empty
//     void save(Index level), void restore(Index level) the state of an open node
//     long take_effort()                                about how many operations were spent since last asked, for the clock
// and whatever its visitors ask for (solving, bounds, a point).
//
// A Visitor knows what is looked for. It holds the node and the assignment, and has
//     Verdict settle(const Effort&)        solves the node, decides what is forced, keeps a leaf;
//     void open(Frame&, const Children&)   after Verdict::branch: the children, in the order they are to be tried
//     bool wants(const Frame&, const Children&)
//                                          whether the frame's next child is worth opening; asked only while there is one
//     bool apply(Frame&, const Children&)  goes to the child `frame.next - 1` of the node just restored; false on
//                                          contradiction
//     void close(const Frame&)             a frame is left for good
//     bool exhausted(const Effort&)        whether the search has to end before the next child
//     bool troubled()                      a node could not be settled; false ends the search
#pragma once

#include <algorithm>
#include <concepts>
#include <limits>
#include <vector>

#include "gdpnet/assignment.hpp"
#include "gdpnet/branching.hpp"
#include "gdpnet/watch.hpp"

namespace gdpnet {

enum class Verdict {
    closed,   // nothing to find below: contradictory, too far, or a leaf that has been dealt with
    branch,   // children are to be opened
    trouble,  // rounding prevented a decision
    stop,     // the visitor has seen enough
};

enum class Finish { complete, limited, stopped };

// Nodes of a search so far. What was contradictory when opened is never settled.
struct Effort {
    Index opened = 1;
    Index settled = 0;
    double done = 0.0;  // the share of the search that is finished, where children of a node have equal shares
};

// An open node. What is not said here of `subject`, `first` and `bound` is up to the visitor.
struct Frame {
    // What its children are: literals of a clause, two sides of a column, sets of rules that are left out, or products
    // that go with such sets.
    enum class Of { clause, split, sets, products };

    Index children = 0;
    Index next = 0;       // the child to be opened next
    Index subject = 0;    // the clause branched on; of a split its column
    Of of = Of::clause;
    Index first = 0;
    double bound = 0.0;
    double value = 0.0;   // of a split column
    Index decided = 0;    // booleans decided at the node
    double share = 0.0;   // of the search, that each of its children has
};

// Room for the children of a frame, as wide as the longest clause, or as many sets or products as there may be.
struct Children {
    Vector<Index> literal;  // of a split: -1 down, 1 up; of sets and products: which
    Vector<double> bound;   // what any point below costs at least, or another order of merit
};

class Stack {
public:
    explicit Stack(const Component& component) {
        const Logic& logic = component.logic;
        Index integers = 0, width = std::max(CheapestSets::kMost, KeptProducts::kMost);
        for (auto whole : component.rows.integer) integers += whole;
        for (Index c = 0; c < logic.clauses(); ++c)
            width = std::max(width, logic.clause_start[c + 1] - logic.clause_start[c]);
        most_ = logic.clauses() + 64 * integers + 2;
        width_ = width;
    }

    Index depth = 0;  // open nodes

    bool full() const { return depth >= most_; }
    Frame& frame(Index level) { return frames_[level]; }
    Children children(Index level) {
        const auto width = std::size_t(width_);
        return {{literals_.data() + level * width_, width}, {bounds_.data() + level * width_, width}};
    }

    // The least bound of children that have not been opened, of frames whose children are in order of their bounds.
    double least_open() {
        double least = std::numeric_limits<double>::infinity();
        for (Index level = 0; level < depth; ++level) {
            const Frame& open = frame(level);
            if (open.next < open.children) least = std::min(least, children(level).bound[open.next]);
        }
        return least;
    }

    // Room for one more level; deep searches are few, so it is made when first reached.
    void reach(Index level) {
        if (level < Index(frames_.size())) return;
        frames_.resize(std::size_t(level + 1));
        literals_.resize(std::size_t((level + 1) * width_));
        bounds_.resize(std::size_t((level + 1) * width_));
    }

private:
    Index most_, width_;
    std::vector<Frame> frames_;
    std::vector<Index> literals_;
    std::vector<double> bounds_;
};

template <class N>
concept Node = requires(N node, Index index, double value, bool up) {
    { node.enforce(index) } -> std::same_as<bool>;
    { node.split(index, value, up) } -> std::same_as<bool>;
    node.save(index);
    node.restore(index);
    { node.take_effort() } -> std::convertible_to<long>;
};

template <class V>
concept Visitor = requires(V visitor, const Effort& effort, Frame& frame, const Children& children) {
    { visitor.settle(effort) } -> std::same_as<Verdict>;
    visitor.open(frame, children);
    { visitor.wants(frame, children) } -> std::same_as<bool>;
    { visitor.apply(frame, children) } -> std::same_as<bool>;
    visitor.close(frame);
    { visitor.exhausted(effort) } -> std::same_as<bool>;
    { visitor.troubled() } -> std::same_as<bool>;
};

// Makes a frame of the two sides of a column, the nearer side first.
inline void open_split(Frame& frame, const Children& children, Index column, double value, double bound) {
    const Index near = value - std::floor(value) < 0.5 ? -1 : 1;
    children.literal[0] = near;
    children.literal[1] = -near;
    children.bound[0] = children.bound[1] = bound;
    frame.children = 2;
    frame.subject = column;
    frame.of = Frame::Of::split;
    frame.value = value;
    frame.bound = bound;
}

// Adds a literal to a frame's children, lowest bound first; among equal ones in order of declaration.
inline void insert_child(Frame& frame, const Children& children, Index literal, double bound) {
    Index at = frame.children++;
    while (at > 0 && children.bound[at - 1] > bound) {
        children.bound[at] = children.bound[at - 1];
        children.literal[at] = children.literal[at - 1];
        --at;
    }
    children.bound[at] = bound;
    children.literal[at] = literal;
}

// Makes a frame of the literals of the chosen clause that may lead below the cutoff.
inline void open_clause(Frame& frame, const Children& children, const Logic& logic, const Branching& branching, double cutoff) {
    const Index c = frame.subject = branching.clause;
    for (Index e = logic.clause_start[c]; e < logic.clause_start[c + 1]; ++e)
        if (branching.literal_bound[e] < cutoff)
            insert_child(frame, children, logic.clause_literal[e], branching.literal_bound[e]);
}

// Makes a frame of the sets of rules that may be left out, where one is still to be chosen. A broken rule that a set does
// not leave out costs what the cheapest of its own literals does.
inline bool open_sets(Frame& frame, const Children& children, const Assignment& assignment, const Branching& branching,
                      double objective, double cutoff) {
    const CheapestSets* open = assignment.open_sets();
    if (open == nullptr) return false;
    frame.of = Frame::Of::sets;
    const Droppable& rules = *assignment.droppable();
    for (Index set = 0; set < Index(open->sets.size()); ++set) {
        double bound = objective;
        std::size_t next = 0;  // of the set, which is in order
        for (Index p = 0; p < rules.count(); ++p) {
            if (next < open->sets[set].size() && open->sets[set][next] == p) {
                ++next;
            } else if (branching.lists(rules.clause[p])) {
                bound = std::max(bound, branching.least_without_last(assignment.logic, rules.clause[p]));
            }
        }
        if (bound < cutoff) insert_child(frame, children, set, bound);
    }
    return true;
}

// Makes a frame of the products that go with these sets, where one is still to be chosen.
inline void open_products(Frame& frame, const Children& children, const Assignment& assignment, double cutoff) {
    frame.of = Frame::Of::products;
    for (Index product = 0; product < assignment.open_products()->count(); ++product) {
        const double bound = assignment.product_bound(product);
        if (bound < cutoff) insert_child(frame, children, product, bound);
    }
}

// Applies a child where explored siblings are left out.
template <Node N>
bool apply_child(N& node, Assignment& assignment, Frame& frame, const Children& children) {
    const Index child = frame.next - 1;
    if (frame.of == Frame::Of::split) return node.split(frame.subject, frame.value, children.literal[child] > 0);
    if (frame.of == Frame::Of::products) return assignment.choose_product(node, children.literal[child]);
    if (frame.of == Frame::Of::sets) {
        assignment.leave_out_set(children.literal[child]);
        return true;
    }
    for (Index earlier = 0; earlier < child; ++earlier) {
        if (!assignment.leave_out(node, children.literal[earlier], children.literal[child])) {
            if (!assignment.prices.any) frame.next = frame.children;  // nothing is left for later siblings
            return false;
        }
    }
    return assignment.choose(node, children.literal[child]);
}

// Searches from the root that `node` and `assignment` stand at. `alive` false: the root is contradictory already.
// Afterwards `stack.depth` is the number of nodes that still have children, if it was ended early.
template <Node N, Visitor V>
Finish search(N& node, Assignment& assignment, Stack& stack, V& visitor, Watch& watch, Effort& effort, bool alive = true) {
    Index& depth = stack.depth;
    depth = 0;
    double share = 1.0;  // of the node at work
    while (true) {
        bool branched = false;
        if (alive) {
            ++effort.settled;
            Verdict verdict = visitor.settle(effort);
            if (verdict == Verdict::branch && stack.full()) verdict = Verdict::trouble;
            if (verdict == Verdict::branch) {
                stack.reach(depth);
                Frame& frame = stack.frame(depth);
                frame.children = frame.next = 0;
                frame.of = Frame::Of::clause;
                frame.decided = assignment.decided();
                visitor.open(frame, stack.children(depth));
                node.save(depth);
                ++depth;
                branched = frame.children > 0;
                frame.share = branched ? share / double(frame.children) : 0.0;
            } else if (verdict == Verdict::stop || (verdict == Verdict::trouble && !visitor.troubled())) {
                return Finish::stopped;
            }
        }
        if (!branched) effort.done += share;
        while (depth > 0) {
            Frame& frame = stack.frame(depth - 1);
            if (frame.next < frame.children && visitor.wants(frame, stack.children(depth - 1))) break;
            effort.done += frame.share * double(frame.children - frame.next);
            visitor.close(frame);
            --depth;
        }
        if (depth == 0) return Finish::complete;
        if (visitor.exhausted(effort) || watch.over(node.take_effort(), effort.done)) return Finish::limited;
        Frame& frame = stack.frame(depth - 1);
        share = frame.share;
        ++frame.next;
        ++effort.opened;
        assignment.back_to(frame.decided);
        node.restore(depth - 1);
        alive = visitor.apply(frame, stack.children(depth - 1));
    }
}

}  // namespace gdpnet
