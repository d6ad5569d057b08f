// Values of a template: Python's, as far as templates can tell.
//
// Strings, sequences and dicts are shared and never change, so they cannot form cycles. What can
// change (namespaces, loops, what macros see) belongs to the render that made it; values only point
// to it and must not outlive the render.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/json.h"
#include "base/outside_map.h"
#include "jinja/text.h"

namespace vitrine::jinja {

using Int = __int128;  // holds every integer of JSON
struct None {};
// An undefined value. Using it is an error with this message; printing it is not.
struct Undefined {
  std::shared_ptr<const std::string> message;
};
struct Sequence;
class Dict;
class Object;

class Value {
 public:
  Value() : state_(None{}) {}
  Value(None) : state_(None{}) {}
  Value(Undefined u) : state_(std::move(u)) {}
  Value(bool b) : state_(b) {}
  Value(int i) : state_(Int{i}) {}
  Value(std::size_t n) : state_(static_cast<Int>(n)) {}
  Value(Int i) : state_(i) {}
  Value(double d) : state_(d) {}
  Value(Text text);
  Value(const char* text) : Value(Text(text)) {}
  Value(std::string_view) = delete;  // use Text(bytes, caller), which says whose text it is
  Value(std::shared_ptr<Sequence> s) : state_(std::move(s)) {}
  Value(std::shared_ptr<const Dict> d) : state_(std::move(d)) {}
  Value(Object* object) : state_(object) {}

  static Value undefined(std::string message);

  bool is_undefined() const { return std::holds_alternative<Undefined>(state_); }
  bool is_none() const { return std::holds_alternative<None>(state_); }
  bool is_bool() const { return std::holds_alternative<bool>(state_); }
  bool is_int() const { return std::holds_alternative<Int>(state_); }
  bool is_float() const { return std::holds_alternative<double>(state_); }
  bool is_number() const { return is_bool() || is_int() || is_float(); }
  bool is_string() const { return std::holds_alternative<std::shared_ptr<const Text>>(state_); }
  const Undefined* if_undefined() const { return std::get_if<Undefined>(&state_); }
  const Text* if_string() const { return deref<std::shared_ptr<const Text>>(); }
  Sequence* if_sequence() const { return deref<std::shared_ptr<Sequence>>(); }
  const Dict* if_dict() const { return deref<std::shared_ptr<const Dict>>(); }
  Object* if_object() const {
    auto object = std::get_if<Object*>(&state_);
    return object ? *object : nullptr;
  }
  bool as_bool() const { return std::get<bool>(state_); }
  Int as_int() const { return is_bool() ? Int{as_bool()} : std::get<Int>(state_); }  // or a bool
  double as_double() const;                                                          // any number
  // The same object, or the same None, bool or number.
  bool same(const Value& other) const;

  bool truthy() const;
  // Python's name of the type: "str", "dict", "NoneType".
  const char* type_name() const;
  // How many containers are inside each other.
  int depth() const;

 private:
  template <typename P>
  auto deref() const -> decltype(std::declval<P>().get()) {
    auto p = std::get_if<P>(&state_);
    return p ? p->get() : nullptr;
  }
  std::variant<None, Undefined, bool, Int, double, std::shared_ptr<const Text>,
               std::shared_ptr<Sequence>, std::shared_ptr<const Dict>, Object*>
      state_;
};

struct Sequence {
  enum class Kind { kList, kTuple, kRange, kView, kGenerator };
  Kind kind = Kind::kList;
  std::vector<Value> items;
  std::string name;      // of a view or generator: "dict_items"; a range as it is shown
  std::size_t next = 0;  // generators: those before have been taken
  int depth = 1;
  bool group = false;  // of groupby: its two items also have names
};

Value make_list(std::vector<Value> items, Sequence::Kind kind = Sequence::Kind::kList,
                std::string name = {});

// Keeps the order of insertion. Keys are strings, numbers, None and tuples of them.
class Dict {
 public:
  // Null: there is none.
  const Value* find(const Value& key) const;
  const Value* find(std::string_view key) const;
  void set(Value key, Value value);
  void set(const char* key, Value value) { set(Value(key), std::move(value)); }
  const std::vector<std::pair<Value, Value>>& items() const { return items_; }
  std::size_t size() const { return items_.size(); }
  void reserve(std::size_t size) { items_.reserve(size); }
  int depth() const { return depth_; }
  // Whether a value may be a key; lists and dicts may not.
  static bool hashable(const Value& key);

 private:
  std::size_t index_of(const Value& key) const;

  std::vector<std::pair<Value, Value>> items_;
  OutsideMap<std::string, std::size_t> index_;  // only when there are many
  int depth_ = 1;
};

Value make_dict(Dict dict);

// `caller`: every string of it is the caller's text. At most kMaxNesting (object.h) levels; what
// parse_json accepts has fewer.
Value from_json(const json::value& value, bool caller, std::int32_t source = 0);

// Python's ==.
bool equal(const Value& a, const Value& b);
// str() and repr().
Text to_text(const Value& value);
Text repr(const Value& value);
void append_text(Text& out, const Value& value);
void append_repr(Text& out, const Value& value);
std::string float_repr(double value);

}  // namespace vitrine::jinja
