#include "jinja/interpreter.h"

#include "jinja/objects.h"
#include "jinja/operators.h"

namespace vitrine::jinja {
namespace {

struct Enter {
  explicit Enter(Budget& b) : budget(b) { budget.enter(); }
  ~Enter() { budget.leave(); }
  Budget& budget;
};

// A call has its own copy of its arguments.
void charge_args(const Args& args) {
  std::size_t bytes = args.positional.size() * sizeof(Value);
  for (const auto& [name, value] : args.named) bytes += sizeof(args.named[0]) + name.size();
  charge_bytes(bytes);
}

}  // namespace

const Value* Scope::find(std::string_view name) const {
  charge(variables.size() / 16 + name.size() / 64);
  for (const auto& [key, value] : variables)
    if (key == name) return &value;
  return nullptr;
}

void Scope::set(std::string_view name, Value value) {
  charge(variables.size() / 16 + name.size() / 64);
  for (auto& [key, old] : variables)
    if (key == name) {
      old = std::move(value);
      return;
    }
  // A scope that is used again keeps its memory.
  bool grows = variables.size() == variables.capacity();
  charge_bytes(name.size() + (grows ? (variables.size() + 1) * sizeof(variables[0]) : 0));
  variables.emplace_back(name, std::move(value));
}

Interpreter::Interpreter(const Dict& context, const Limits& limits, std::tm now)
    : context_(context), budget_(limits), now_(now) {}

Scope* Interpreter::enter_scope(Scope* parent) {
  if (free_scopes_.empty()) {
    charge_bytes(sizeof(Scope) + 32);
    scopes_.push_back(std::make_unique<Scope>());
    free_scopes_.push_back(scopes_.back().get());
  }
  Scope* out = free_scopes_.back();
  free_scopes_.pop_back();
  out->parent = parent;
  return out;
}

void Interpreter::leave_scope(Scope* scope) {
  if (scope->captured) return;
  scope->variables.clear();
  free_scopes_.push_back(scope);
}

void Interpreter::capture() {
  for (Scope* s = scope_; s != nullptr && !s->captured; s = s->parent) s->captured = true;
}

Text Interpreter::run(const Body& body) {
  return render_in(nullptr, body, [] {});
}

Interpreter::Flow Interpreter::exec(const Body& body) {
  for (const auto& stmt : body) {
    Flow flow = exec(*stmt);
    if (flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

Interpreter::Flow Interpreter::exec(const Stmt& stmt) {
  Enter enter(budget_);
  charge();
  at_ = stmt.at;
  switch (stmt.kind) {
    case Stmt::Kind::kData:
      out_->append(*stmt.value.if_string());
      break;
    case Stmt::Kind::kOutput:
      append_text(*out_, eval(*stmt.expr));
      break;
    case Stmt::Kind::kIf:
      return exec_if(stmt);
    case Stmt::Kind::kFor:
      exec_for(stmt, eval(*stmt.expr), 0);
      break;
    case Stmt::Kind::kSet:
      assign(*stmt.target, eval(*stmt.expr));
      break;
    case Stmt::Kind::kSetBlock:
      exec_set_block(stmt);
      break;
    case Stmt::Kind::kMacro:
      capture();
      scope_->set(stmt.name, own<Macro>(stmt, scope_));
      break;
    case Stmt::Kind::kCall:
      exec_call_block(stmt);
      break;
    case Stmt::Kind::kFilter: {
      Text text = block_text(stmt.body);
      const Text* before = std::exchange(block_text_, &text);
      Value value = eval(*stmt.expr);
      block_text_ = before;
      append_text(*out_, value);
      break;
    }
    case Stmt::Kind::kWith:
      exec_with(stmt);
      break;
    case Stmt::Kind::kScope:
      out_->append(block_text(stmt.body));
      break;
    case Stmt::Kind::kBreak:
      return Flow::kBreak;
    case Stmt::Kind::kContinue:
      return Flow::kContinue;
  }
  return Flow::kNext;
}

Interpreter::Flow Interpreter::exec_if(const Stmt& stmt) {
  for (const Stmt::Branch& branch : stmt.branches) {
    if (eval(*branch.test).truthy()) return exec(branch.body);
  }
  return exec(stmt.otherwise);
}

void Interpreter::exec_for(const Stmt& stmt, const Value& items, int depth) {
  Scope* outer = scope_;
  if (stmt.recursive) capture();
  auto* loop = own<Loop>(*this, stmt, items, outer, depth);
  Scope* scope = enter_scope(outer);
  bool any = false;
  in_scope(scope, [&] {
    while (loop->advance()) {
      any = true;
      charge();
      scope->variables.clear();
      scope->set("loop", loop);
      assign(*stmt.target, loop->current());
      if (exec(stmt.body) == Flow::kBreak) break;
    }
  });
  loop->close();
  leave_scope(scope);
  if (any || stmt.otherwise.empty()) return;
  Scope* other = enter_scope(outer);
  in_scope(other, [&] { exec(stmt.otherwise); });
  leave_scope(other);
}

Text Interpreter::loop_text(const Stmt& stmt, const Value& items, Scope* parent, int depth) {
  Enter enter(budget_);
  Text text;
  Text* before = std::exchange(out_, &text);
  in_scope(parent, [&] { exec_for(stmt, items, depth); });
  out_ = before;
  return text;
}

Text Interpreter::block_text(const Body& body) {
  return render_in(scope_, body, [] {});
}

void Interpreter::exec_set_block(const Stmt& stmt) {
  Text text = block_text(stmt.body);
  if (stmt.expr == nullptr) return assign(*stmt.target, Value(std::move(text)));
  const Text* before = std::exchange(block_text_, &text);
  Value value = eval(*stmt.expr);
  block_text_ = before;
  assign(*stmt.target, value);
}

void Interpreter::exec_call_block(const Stmt& stmt) {
  capture();
  Args extra;
  extra.named.emplace_back("caller", own<Macro>(stmt, scope_));
  append_text(*out_, eval_call(*stmt.expr, std::move(extra)));
}

void Interpreter::exec_with(const Stmt& stmt) {
  std::vector<Value> values;
  for (const Stmt::Param& param : stmt.params) values.push_back(eval(*param.fallback));
  Scope* scope = enter_scope(scope_);
  in_scope(scope, [&] {
    for (std::size_t i = 0; i < values.size(); ++i) assign(*stmt.params[i].target, values[i]);
    exec(stmt.body);
  });
  leave_scope(scope);
}

void Interpreter::assign(const Expr& target, const Value& value) {
  at_ = target.at;
  if (target.kind == Expr::Kind::kName) {
    scope_->set(target.name, value);
  } else if (target.kind == Expr::Kind::kAttribute) {
    Value object = eval(*target.items[0]);
    auto* space = dynamic_cast<Namespace*>(object.if_object());
    if (space == nullptr)
      fail("cannot assign attribute '{}' on a '{}', only on a namespace", target.name,
           object.type_name());
    space->set(target.name, value);
  } else {
    std::vector<Value> parts = iterate(need(value));
    if (parts.size() != target.items.size())
      fail("found {} values to unpack, expected {}", parts.size(), target.items.size());
    for (std::size_t i = 0; i < parts.size(); ++i) assign(*target.items[i], parts[i]);
  }
}

Value Interpreter::eval(const Expr& expr) {
  Enter enter(budget_);
  charge();
  at_ = expr.at;
  return eval_inner(expr);
}

Value Interpreter::eval_inner(const Expr& expr) {
  switch (expr.kind) {
    case Expr::Kind::kConstant:
      return expr.value;
    case Expr::Kind::kName:
      return eval_name(expr);
    case Expr::Kind::kBlockText:
      return *block_text_;
    case Expr::Kind::kList:
    case Expr::Kind::kTuple: {
      std::vector<Value> items;
      for (const ExprPtr& item : expr.items) items.push_back(eval(*item));
      return make_list(std::move(items), expr.kind == Expr::Kind::kList ? Sequence::Kind::kList
                                                                        : Sequence::Kind::kTuple);
    }
    case Expr::Kind::kDict:
      return eval_dict(expr);
    case Expr::Kind::kAttribute: {
      Value object = eval(*expr.items[0]);
      at_ = expr.at;
      return get_attribute(object, expr.name);
    }
    case Expr::Kind::kItem: {
      Value object = eval(*expr.items[0]);
      Value key = eval(*expr.items[1]);
      at_ = expr.at;
      return get_item(object, key);
    }
    case Expr::Kind::kSlice:
      return eval_slice(expr);
    case Expr::Kind::kCall:
      return eval_call(expr, {});
    case Expr::Kind::kFilter: {
      Value value = eval(*expr.items[0]);
      Args args = eval_args(expr.args);
      at_ = expr.at;
      return filter(expr.name, value, std::move(args));
    }
    case Expr::Kind::kTest: {
      Value value = eval(*expr.items[0]);
      Args args = eval_args(expr.args);
      at_ = expr.at;
      return test(expr.name, value, std::move(args));
    }
    case Expr::Kind::kNot:
      return !eval(*expr.items[0]).truthy();
    case Expr::Kind::kNegate:
      return negate(eval(*expr.items[0]));
    case Expr::Kind::kPlus: {
      Value value = need(eval(*expr.items[0]));
      if (!value.is_number()) fail("bad operand type for unary +: '{}'", value.type_name());
      return value.is_float() ? value : Value(value.as_int());
    }
    case Expr::Kind::kBinary: {
      Value a = eval(*expr.items[0]);
      Value b = eval(*expr.items[1]);
      at_ = expr.at;
      return binary(expr.name, a, b);
    }
    case Expr::Kind::kConcat:
      return eval_concat(expr);
    case Expr::Kind::kAnd: {
      Value a = eval(*expr.items[0]);
      return a.truthy() ? eval(*expr.items[1]) : a;
    }
    case Expr::Kind::kOr: {
      Value a = eval(*expr.items[0]);
      return a.truthy() ? a : eval(*expr.items[1]);
    }
    case Expr::Kind::kCompare:
      return eval_compare(expr);
    case Expr::Kind::kCondition:
      if (eval(*expr.items[1]).truthy()) return eval(*expr.items[0]);
      if (expr.items[2] != nullptr) return eval(*expr.items[2]);
      return Value::undefined(
          "the inline if-expression evaluated to false and no else section was defined");
  }
  VT_CHECK(false, "an expression of no kind");
}

Value Interpreter::eval_name(const Expr& expr) {
  for (Scope* s = scope_; s != nullptr; s = s->parent)
    if (const Value* value = s->find(expr.name)) return *value;
  if (const Value* value = context_.find(expr.name)) return *value;
  if (GlobalFunction function = find_global(expr.name)) {
    Object*& object = functions_[expr.name];
    if (object == nullptr) object = own<Function>(expr.name, function);
    return object;
  }
  return Value::undefined(fmt::format("'{}' is undefined", expr.name));
}

Value Interpreter::eval_dict(const Expr& expr) {
  Dict dict;
  for (std::size_t i = 0; i < expr.items.size(); i += 2) {
    Value key = eval(*expr.items[i]);
    if (!Dict::hashable(key)) fail("unhashable type: '{}'", key.type_name());
    dict.set(std::move(key), eval(*expr.items[i + 1]));
  }
  return make_dict(std::move(dict));
}

Value Interpreter::eval_concat(const Expr& expr) {
  Text out;
  for (const ExprPtr& item : expr.items) {
    append_text(out, eval(*item));
  }
  return out;
}

bool Interpreter::eval_compare(const Expr& expr) {
  Value left = eval(*expr.items[0]);
  for (std::size_t i = 0; i < expr.ops.size(); ++i) {
    const std::string& op = expr.ops[i];
    Value right = eval(*expr.items[i + 1]);
    at_ = expr.at;
    bool ok = false;
    if (op == "==")
      ok = equal(left, right);
    else if (op == "!=")
      ok = !equal(left, right);
    else if (op == "in")
      ok = contains(right, left);
    else if (op == "not in")
      ok = !contains(right, left);
    else {
      int order = compare(left, right);
      ok = op == "<" ? order < 0 : op == "<=" ? order <= 0 : op == ">" ? order > 0 : order >= 0;
    }
    if (!ok) return false;
    left = std::move(right);
  }
  return true;
}

void Interpreter::add_star(const CallArgs& args, Args& out) {
  if (args.star)
    for (Value& value : iterate(need(eval(*args.star)))) out.positional.push_back(std::move(value));
  if (!args.star_star) return;
  Value more = eval(*args.star_star);
  if (more.if_dict() == nullptr) fail("argument after ** must be a mapping");
  for (const auto& [key, value] : more.if_dict()->items()) {
    if (!key.is_string()) fail("keywords must be strings");
    charge_bytes(key.if_string()->size() + sizeof(out.named[0]));
    out.named.emplace_back(key.if_string()->bytes(), value);
  }
}

Args Interpreter::eval_args(const CallArgs& args) {
  Args out;
  for (const ExprPtr& item : args.positional) out.positional.push_back(eval(*item));
  for (const auto& [name, item] : args.named) out.named.emplace_back(name, eval(*item));
  add_star(args, out);
  return out;
}

Value Interpreter::eval_call(const Expr& expr, Args extra) {
  const Expr& callee = *expr.items[0];
  auto arguments = [&] {
    Args args = eval_args(expr.args);
    for (auto& named : extra.named) args.named.push_back(std::move(named));
    at_ = expr.at;
    return args;
  };
  // The usual method call, without an object for the bound method.
  if (callee.kind == Expr::Kind::kAttribute) {
    Value self = eval(*callee.items[0]);
    at_ = callee.at;
    if (Method method = find_method(self, callee.name)) return method(*this, self, arguments());
    Value bound = get_attribute(self, callee.name);
    return call(bound, arguments());
  }
  Value function = eval(callee);
  return call(function, arguments());
}

Value Interpreter::call(const Value& callee, Args args) {
  need(callee);
  Enter enter(budget_);
  charge_args(args);
  Object* object = callee.if_object();
  if (object == nullptr) fail("'{}' object is not callable", callee.type_name());
  return object->call(*this, std::move(args));
}

Value Interpreter::filter(std::string_view name, const Value& value, const Args& args) {
  FilterFunction run = find_filter(name);
  if (run == nullptr) fail("no filter named '{}'", name);
  Enter enter(budget_);
  charge_args(args);
  Params params(name, args);
  return run(*this, value, params);
}

bool Interpreter::test(std::string_view name, const Value& value, const Args& args) {
  TestFunction run = find_test(name);
  if (run == nullptr) fail("no test named '{}'", name);
  Enter enter(budget_);
  charge_args(args);
  Params params(name, args);
  return run(*this, value, params);
}

}  // namespace vitrine::jinja
