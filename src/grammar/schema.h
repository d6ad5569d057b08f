// JSON Schema 2020-12 as sets of JSON values.
//
// A schema is brought into a union of Shapes. A Shape says for each type which values of it are in
// the set: numbers and strings by automata, so that conjunction and negation are exact; members and
// items by Needs, which are expanded only when they are written, so that schemas may be recursive.
// What does not fit this form is refused with the keyword's name.
#pragma once

#include <compare>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "grammar/expr.h"

namespace vitrine::grammar {

using DfaPtr = std::shared_ptr<const Dfa>;

// A demand on a value, by a part of the schema document (which outlives this).
struct Demand {
  enum class Kind : std::uint8_t { kNever, kSchema, kNotSchema, kConst, kNotConst };
  Kind kind;
  const json::value* value;
  auto operator<=>(const Demand&) const = default;
};
// All of these demands hold; empty: any value. Sorted, without repetition.
using Need = std::vector<Demand>;
Need both(const Need& a, const Need& b);
inline const Need kNever{{Demand::Kind::kNever, nullptr}};

struct Shape {
  enum Type : std::uint8_t {
    kNull = 1,
    kFalse = 2,
    kTrue = 4,
    kNumber = 8,
    kString = 16,
    kArray = 32,
    kObject = 64,
    kAll = 127
  };

  struct Array {
    std::vector<Need> first = {};  // of the first items
    Need rest = {};                // of the others
    std::uint64_t min = 0, max = kUnbounded;
    const Need& at(std::size_t i) const { return i < first.size() ? first[i] : rest; }
  };
  // properties, patternProperties and additionalProperties of one schema.
  struct Group {
    struct Pattern {
      std::string text = {};
      DfaPtr dfa = {};
      Need need = {};
    };
    std::vector<std::pair<std::string, Need>> named = {};
    std::vector<Pattern> patterns = {};
    Need other = {};
  };
  struct Object {
    std::vector<std::shared_ptr<const Group>> groups = {};  // all of them hold
    std::vector<std::string> required = {};  // in the order in which they are written
    DfaPtr names = {};                       // null: any
    std::uint64_t min = 0, max = kUnbounded;

    void add(Group group) { groups.push_back(std::make_shared<const Group>(std::move(group))); }
    // The demands on the member `name`.
    Need of(const std::string& name) const;
  };

  std::uint8_t types = kAll;
  DfaPtr number = {};  // spellings (numerals.h); null: any number
  DfaPtr text = {};    // contents; null: any
  std::uint64_t min_length = 0, max_length = kUnbounded;
  Array array = {};
  Object object = {};
};
using Shapes = std::vector<Shape>;

// Reads schemas. Everything it returns is about values, never about their spelling.
class SchemaReader {
 public:
  // `root` outlives the reader; `what` names it in errors.
  SchemaReader(const json::value& root, std::string_view what, Budget& budget)
      : root_(root), what_(what), budget_(budget) {}

  // The same need, with schemas of equal text merged: they mean the same wherever they stand.
  Need canonical(Need need);
  // The union of shapes that a need is equal to. Cached.
  Result<const Shapes*> shapes(const Need& need);
  // The conjunction of two.
  Result<Shapes> meet(const Shapes& a, const Shapes& b);
  // Whether it is certain that no value is in it. Looks into required members.
  Result<bool> surely_empty(const Shapes& shapes, int depth = 3);

  Budget& budget() { return budget_; }
  Error refuse(std::string_view keyword, std::string_view why) const;

 private:
  friend class Keywords;
  Result<Shapes> expand(const Demand& demand);
  Result<Shapes> expand_schema(const json::value& schema, bool negated);
  Result<Shapes> expand_const(const json::value& value, bool negated);
  Result<bool> meet(Shape& a, const Shape& b);
  Result<const json::value*> resolve(std::string_view reference);
  // Values of an enumeration that are not containers; negated: all others.
  Result<Shapes> scalars(const json::array& values, bool negated);
  static Shape without_member(const std::string& name);

  const json::value& root_;
  std::string_view what_;
  Budget& budget_;
  std::map<Need, std::unique_ptr<Shapes>> kept_;
  std::map<const json::value*, const json::value*> canonical_;
  std::map<std::string, const json::value*> first_of_;       // by text
  std::vector<std::pair<const json::value*, bool>> active_;  // schemas being expanded
};

inline constexpr std::size_t kMaxShapes = 256;       // of one union
inline constexpr int kMaxSchemaDepth = 100;          // of schemas applied to one value
inline constexpr std::size_t kMaxNeeds = 20000;      // different ones
inline constexpr std::size_t kMaxProperties = 4096;  // of one object

// Texts of a "format"; none: it is not known.
const char* format_pattern(std::string_view name);

}  // namespace vitrine::grammar
