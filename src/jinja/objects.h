// Objects of a render: macros, loops, namespaces, functions.
#pragma once

#include "jinja/interpreter.h"

namespace vitrine::jinja {

// Also the `caller` of a call block.
class Macro : public Object {
 public:
  Macro(const Stmt& stmt, Scope* scope) : stmt_(stmt), scope_(scope) {}
  const char* type_name() const override { return "Macro"; }
  bool callable() const override { return true; }
  Value call(Interpreter& run, Args args) override;
  std::optional<Value> attribute(Interpreter& run, std::string_view name) override;

 private:
  void bind(Args args, Dict& variables) const;

  const Stmt& stmt_;
  Scope* scope_;  // where it was defined
};

class Loop : public Object {
 public:
  Loop(Interpreter& run, const Stmt& stmt, const Value& items, Scope* scope, int depth);
  const char* type_name() const override { return "LoopContext"; }
  bool callable() const override { return true; }
  Value call(Interpreter& run, Args args) override;  // loop(items) of a recursive loop
  std::optional<Value> attribute(Interpreter& run, std::string_view name) override;

  // The next item becomes the current one; false: there is none.
  bool advance();
  const Value& current() const { return current_; }
  // Releases the items; the object may outlive its loop.
  void close() { source_.clear(); }

 private:
  // The next item that passes the loop's filter.
  std::optional<Value> fetch();
  const std::optional<Value>& peek();
  std::size_t length();

  Interpreter& run_;
  const Stmt& stmt_;
  Scope* scope_;  // around the loop
  int depth_;
  std::vector<Value> source_;
  std::size_t next_ = 0;  // of source_
  bool filtered_;
  std::int64_t index_ = -1;
  Value previous_, current_;
  bool peeked_ = false;
  std::optional<Value> after_;
  std::optional<std::vector<Value>> last_changed_;
};

class Namespace : public Object {
 public:
  const char* type_name() const override { return "Namespace"; }
  void set(std::string_view name, Value value) { variables_.set(name, std::move(value)); }
  std::optional<Value> attribute(Interpreter& run, std::string_view name) override;

 private:
  Scope variables_;
};

// A built-in function.
class Function : public Object {
 public:
  Function(std::string name, GlobalFunction function)
      : name_(std::move(name)), function_(function) {}
  const char* type_name() const override { return "function"; }
  bool callable() const override { return true; }
  Value call(Interpreter& run, Args args) override { return function_(run, std::move(args)); }

 private:
  std::string name_;
  GlobalFunction function_;
};

class BoundMethod : public Object {
 public:
  BoundMethod(Value self, Method method) : self_(std::move(self)), method_(method) {}
  const char* type_name() const override { return "builtin_function_or_method"; }
  bool callable() const override { return true; }
  Value call(Interpreter& run, Args args) override { return method_(run, self_, std::move(args)); }

 private:
  Value self_;
  Method method_;
};

}  // namespace vitrine::jinja
