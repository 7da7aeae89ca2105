// Lists the band: the products near enough to the optimum to have weight.
//
// The search for the nearest point stops deciding as soon as a point satisfies every rule; here every
// required rule gets an option of its own, so that each product is met once. Those farther than the
// band reaches are pruned by the bound of their linear program, empty ones by its infeasibility.
#pragma once

#include "gdpnet/band/products.hpp"
#include "gdpnet/component.hpp"
#include "gdpnet/linear.hpp"
#include "gdpnet/search.hpp"
#include "gdpnet/tolerances.hpp"

namespace gdpnet::band {

// What may be chosen for each clause of a component, as compressed lists.
struct Choices {
    std::vector<Index> clause_start;  // options of each clause
    std::vector<Index> option_start;  // literals of each option
    std::vector<Index> literal;       // all of an option hold together
    Flags proposition;                // clauses that only admit or refuse a choice

    Index options(Index c) const { return clause_start[c + 1] - clause_start[c]; }
};

// A visitor of the search, which see.
class Listing {
public:
    Listing(const Choices& choices, Linear& node, Assignment& assignment);

    // Before a sample. Products up to the value `reach`, distance and prices, are listed, at most `cap` of them; those of
    // the disjuncts in `nearest` come first.
    void begin(Vector<const Truth> nearest, Index outputs, double eps, double reach, Index cap, Products& products);

    // Searches from the root, where the node and the assignment stand.
    Finish run(Stack& stack, Watch& watch, bool alive);

    bool capped = false;  // whether only some products were kept

    Verdict settle(const Effort&);
    void open(Frame& frame, const Children&);
    bool wants(const Frame& frame, const Children&) {
        if (complete_ && choices_.proposition[frame.subject]) return false;
        complete_ = false;
        return visits_ < kVisits * cap_;
    }
    bool apply(Frame& frame, const Children&);
    void close(const Frame& frame) {
        chosen_[frame.subject] = 0;
        if (!choices_.proposition[frame.subject]) complete_ = false;
    }
    bool exhausted(const Effort&) { return false; }
    bool troubled() { return false; }

private:
    // The first required rule without a choice, then the first proposition not yet true; or -1.
    Index next_clause() const;
    // The option that the projection has taken, so that its product is met first.
    Index first_option(Index c) const;
    bool has_true_option(Index c) const;

    void keep();
    // Writes the vertex of the node and what holds it.
    void write_piece(Index p);
    // The weight up to which the quadratic term leaves the vertex optimal.
    double steady_weight() const;

    const Choices& choices_;
    Linear& node_;
    Assignment& assignment_;
    std::vector<Index> rules_, propositions_;  // the clauses
    Flags chosen_;          // by clause: whether an option was chosen
    Index clause_ = 0;      // to branch on
    bool complete_ = false; // whether a product was just met: other ways to satisfy propositions give the same
    Vector<const Truth> nearest_;
    Index outputs_ = 0, cap_ = 0, visits_ = 0;
    double eps_ = 0.0, reach_ = 0.0;
    double owed_ = 0.0;  // prices at the node at hand
    Products* products_ = nullptr;
};

}  // namespace gdpnet::band
