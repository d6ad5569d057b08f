// Evaluates a parsed template. One object is one render and owns everything that the render
// creates.
//
// interpreter.cpp has statements and expressions, access.cpp attributes, items and slices, macros
// and loops are in objects.cpp; filters, tests and methods are tables of functions.
#pragma once

#include <ctime>
#include <map>

#include "jinja/ast.h"
#include "jinja/object.h"

namespace vitrine::jinja {

// Variables of a block, inside those of another.
struct Scope {
  Scope* parent = nullptr;
  std::vector<std::pair<std::string, Value>> variables;
  bool captured = false;  // a macro or loop object may still refer to it

  const Value* find(std::string_view name) const;
  void set(std::string_view name, Value value);
};

class Interpreter {
 public:
  // All outlive the interpreter. `now`: what strftime_now shows.
  Interpreter(const Dict& context, const Limits& limits, std::tm now);

  Text run(const Body& body);
  Position position() const { return at_; }

  Usage used() const { return budget_.used(); }
  const std::tm& now() const { return now_; }
  Value eval(const Expr& expr);
  Value get_attribute(const Value& object, std::string_view name);
  Value get_item(const Value& object, const Value& key);
  // All items; of a generator those that are left, which are taken from it.
  std::vector<Value> iterate(const Value& value);
  Value call(const Value& callee, Args args);
  Value filter(std::string_view name, const Value& value, const Args& args);
  bool test(std::string_view name, const Value& value, const Args& args);
  // The text that `body` renders in a new scope inside `parent`; `prepare` fills the scope.
  template <typename Prepare>
  Text render_in(Scope* parent, const Body& body, Prepare prepare);
  Text loop_text(const Stmt& stmt, const Value& items, Scope* parent, int depth);
  void assign(const Expr& target, const Value& value);
  void set_variable(std::string_view name, Value value) { scope_->set(name, std::move(value)); }

  template <typename T, typename... A>
  T* own(A&&... args) {
    charge_bytes(sizeof(T) + 32);
    objects_.push_back(std::make_unique<T>(std::forward<A>(args)...));
    return static_cast<T*>(objects_.back().get());
  }
  Scope* enter_scope(Scope* parent);
  void leave_scope(Scope* scope);
  // Runs something with another scope.
  template <typename F>
  auto in_scope(Scope* scope, F&& run);

 private:
  enum class Flow { kNext, kBreak, kContinue };

  void capture();

  Flow exec(const Body& body);
  Flow exec(const Stmt& stmt);
  Flow exec_if(const Stmt& stmt);
  void exec_for(const Stmt& stmt, const Value& items, int depth);
  void exec_set_block(const Stmt& stmt);
  void exec_call_block(const Stmt& stmt);
  void exec_with(const Stmt& stmt);
  Text block_text(const Body& body);

  Value eval_inner(const Expr& expr);
  Value eval_name(const Expr& expr);
  Value eval_dict(const Expr& expr);
  Value eval_slice(const Expr& expr);
  Value eval_call(const Expr& expr, Args extra);
  Value eval_concat(const Expr& expr);
  bool eval_compare(const Expr& expr);
  Args eval_args(const CallArgs& args);
  void add_star(const CallArgs& args, Args& out);

  const Dict& context_;
  Budget budget_;
  std::tm now_;
  Position at_;
  std::vector<std::unique_ptr<Object>> objects_;
  std::map<std::string, Object*, std::less<>> functions_;
  std::vector<std::unique_ptr<Scope>> scopes_;
  std::vector<Scope*> free_scopes_;
  Scope* scope_ = nullptr;
  Text* out_ = nullptr;
  const Text* block_text_ = nullptr;  // of the filter or set block that is being finished
};

// Slices, for lists and strings alike: the indices that begin, end and step take out of `size`.
struct Slice {
  Int from = 0, stride = 1;
  std::size_t count = 0;
  std::size_t operator[](std::size_t i) const {
    return static_cast<std::size_t>(from + static_cast<Int>(i) * stride);
  }
};
Slice slice_of(std::size_t size, const Value& begin, const Value& end, const Value& step);

using FilterFunction = Value (*)(Interpreter&, const Value&, Params&);
struct FilterEntry {
  std::string_view name;
  FilterFunction run;
};
// Null: no filter of that name.
FilterFunction find_filter(std::string_view name);

using TestFunction = bool (*)(Interpreter&, const Value&, Params&);
TestFunction find_test(std::string_view name);

// A method of a str, dict, list or tuple; null: there is none of that name.
using Method = Value (*)(Interpreter&, const Value& self, Args args);
Method find_method(const Value& self, std::string_view name);
// Methods that change a dict or list, which templates may not.
bool is_mutator(const Value& self, std::string_view name);

// range, dict, namespace and the others; null: none of that name.
using GlobalFunction = Value (*)(Interpreter&, Args);
GlobalFunction find_global(std::string_view name);

template <typename F>
auto Interpreter::in_scope(Scope* scope, F&& run) {
  struct Back {
    Interpreter& self;
    Scope* before;
    ~Back() { self.scope_ = before; }
  } back{*this, scope_};
  scope_ = scope;
  return run();
}

template <typename Prepare>
Text Interpreter::render_in(Scope* parent, const Body& body, Prepare prepare) {
  Scope* scope = enter_scope(parent);
  Text text;
  struct Back {
    Interpreter& self;
    Text* before;
    ~Back() { self.out_ = before; }
  } back{*this, out_};
  out_ = &text;
  in_scope(scope, [&] {
    prepare();
    exec(body);
  });
  leave_scope(scope);
  return text;
}

}  // namespace vitrine::jinja
