// For each need of a schema: how its values are written.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "grammar/compile.h"
#include "grammar/schema.h"

namespace vitrine::grammar {

using NodeId = std::uint32_t;

// The keys that an object distinguishes: named ones first, each once; then kinds of free ones.
struct Keys {
  struct Label {
    NodeId value;
    bool required;
  };
  Dfa dfa;  // contents of keys; label i has number i + 1
  std::vector<Label> labels;
  std::uint32_t named = 0;
  bool any_free = false;    // the free ones are all others, of one kind
  bool impossible = false;  // something that is required cannot be
};

// How the values of one shape are written.
struct Plan {
  const Shape* shape;
  std::uint8_t types;
  // Null: any (for strings, of the shape's length).
  DfaPtr number = {}, text = {};
  std::vector<NodeId> first = {};
  NodeId rest = 0;
  Keys keys = {};
};

struct Node {
  Need need;
  std::vector<Plan> plans = {};
  bool productive = false;
  std::uint32_t rule = 0;
};

class SchemaPlanner {
 public:
  // `schema` outlives this; `what` names it in errors.
  SchemaPlanner(const json::value& schema, std::string_view what, SchemaOptions options,
                Budget& budget)
      : schema_(schema),
        what_(what),
        options_(options),
        budget_(budget),
        reader_(schema, what, budget) {}

  // Finds all reachable needs, and those that no finite value satisfies (a member that requires
  // itself). Returns the node of the schema itself; an error when no value satisfies it.
  Result<NodeId> run();

  std::deque<Node>& nodes() { return nodes_; }
  const Node& node(NodeId id) const { return nodes_[id]; }
  const SchemaReader& reader() const { return reader_; }
  bool can_be_array(const Plan& p) const;
  bool can_be_object(const Plan& p) const;
  // The items that are possible, up to the first that is not.
  std::uint64_t most_items(const Plan& p) const;

 private:
  NodeId node_of(const Need& need);
  Status plan(Node& n);
  Status plan_number(Plan& p);
  Status plan_text(Plan& p);
  void plan_items(Plan& p);
  Status plan_keys(Plan& p);
  void number_labels(Plan& p, const std::vector<std::string>& names, std::size_t patterns);
  bool mark_productive();
  bool can_be(const Plan& p) const;

  const json::value& schema_;
  std::string_view what_;
  SchemaOptions options_;
  Budget& budget_;
  SchemaReader reader_;
  std::deque<Node> nodes_;
  std::map<Need, NodeId> ids_;
  std::map<DfaPtr, DfaPtr> numbers_;  // as written
};

}  // namespace vitrine::grammar
