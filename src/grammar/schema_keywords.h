// The keywords of one schema object.
#pragma once

#include <span>

#include "grammar/schema.h"

namespace vitrine::grammar {

class Keywords {
 public:
  Keywords(SchemaReader& reader, const json::value& schema)
      : reader_(reader), schema_(schema.get_object()), is_root_(&schema == &reader.root_) {}

  // The values that the schema admits; negated: the others.
  Result<Shapes> read(bool negated);

 private:
  using Handler = Result<Shapes> (Keywords::*)(const json::value& value, bool negated);
  struct Known {
    std::string_view name;
    Handler handler;  // null: it says nothing about values
  };
  static std::span<const Known> known();

  // schema_values.cpp: about one value
  Result<Shapes> type(const json::value& v, bool negated);
  Result<Shapes> constant(const json::value& v, bool negated);
  Result<Shapes> enumeration(const json::value& v, bool negated);
  Result<Shapes> minimum(const json::value& v, bool negated);
  Result<Shapes> exclusive_minimum(const json::value& v, bool negated);
  Result<Shapes> maximum(const json::value& v, bool negated);
  Result<Shapes> exclusive_maximum(const json::value& v, bool negated);
  Result<Shapes> multiple_of(const json::value& v, bool negated);
  Result<Shapes> min_length(const json::value& v, bool negated);
  Result<Shapes> max_length(const json::value& v, bool negated);
  Result<Shapes> pattern(const json::value& v, bool negated);
  Result<Shapes> format(const json::value& v, bool negated);
  Result<Shapes> schema_uri(const json::value& v, bool negated);
  Result<Shapes> id(const json::value& v, bool negated);
  // schema_containers.cpp: about items and members
  Result<Shapes> items(const json::value& v, bool negated);  // with prefixItems
  Result<Shapes> prefix_items(const json::value& v, bool negated);
  Result<Shapes> min_items(const json::value& v, bool negated);
  Result<Shapes> max_items(const json::value& v, bool negated);
  Result<Shapes> unique_items(const json::value& v, bool negated);
  Result<Shapes> contains(const json::value& v, bool negated);
  Result<Shapes> unevaluated_items(const json::value& v, bool negated);
  Result<Shapes> properties(const json::value& v, bool negated);
  Result<Shapes> pattern_properties(const json::value& v, bool negated);
  Result<Shapes> additional_properties(const json::value& v, bool negated);
  Result<Shapes> unevaluated_properties(const json::value& v, bool negated);
  Result<Shapes> property_names(const json::value& v, bool negated);
  Result<Shapes> required(const json::value& v, bool negated);
  Result<Shapes> min_properties(const json::value& v, bool negated);
  Result<Shapes> max_properties(const json::value& v, bool negated);
  Result<Shapes> dependent_required(const json::value& v, bool negated);
  Result<Shapes> dependent_schemas(const json::value& v, bool negated);
  // schema_logic.cpp: about other schemas for the same value
  Result<Shapes> all_of(const json::value& v, bool negated);
  Result<Shapes> any_of(const json::value& v, bool negated);
  Result<Shapes> one_of(const json::value& v, bool negated);
  Result<Shapes> negation(const json::value& v, bool negated);
  Result<Shapes> if_then_else(const json::value& v, bool negated);
  Result<Shapes> ref(const json::value& v, bool negated);
  Result<Shapes> cannot(const json::value& v, bool negated);

  const json::value* find(std::string_view name) const { return schema_.if_contains(name); }
  Error invalid(std::string_view keyword, const json::value& found, std::string_view allowed) const;
  Error cannot_negate(std::string_view keyword) const;
  // A size: a whole number from 0 on.
  Result<std::uint64_t> size(std::string_view keyword, const json::value& v) const;
  Result<const json::object*> object(std::string_view keyword, const json::value& v) const;
  Result<const json::array*> list(std::string_view keyword, const json::value& v) const;
  Result<std::vector<std::string>> names(std::string_view keyword, const json::value& v) const;
  Result<const Shapes*> shapes_of(const json::value& schema, bool negated);
  Status append(Shapes& out, const Shapes& more) const;
  Result<Shapes> number_shape(Result<Dfa> dfa, bool negated);
  Result<Shapes> text_shape(Result<Dfa> dfa, bool negated);
  Result<Shapes> bound(std::string_view keyword, const json::value& v, bool below, bool at,
                       bool above, bool negated);
  Result<Shapes> member_group(bool negated);
  bool has_applicators() const;

  SchemaReader& reader_;
  const json::object& schema_;
  bool is_root_;
  std::string_view keyword_;  // being read
};

// The values that a schema admits or, negated, does not admit.
Need need_of(const json::value& schema, bool negated = false);
// Whether a schema obviously admits everything (true or {}).
bool is_trivial(const json::value& schema);

}  // namespace vitrine::grammar
