#include "jinja/objects.h"

#include <algorithm>

namespace vitrine::jinja {
namespace {

std::optional<Value> take_named(Args& args, std::string_view name) {
  charge(args.named.size() / 8 + 1);
  for (auto it = args.named.begin(); it != args.named.end(); ++it)
    if (it->first == name) {
      Value out = std::move(it->second);
      args.named.erase(it);
      return out;
    }
  return std::nullopt;
}

}  // namespace

// What the macro's scope holds before its body: parameters (defaults are evaluated later, in order)
// and the special names that the body uses.
void Macro::bind(Args args, Dict& variables) const {
  std::size_t count = stmt_.params.size();
  bool has_caller = false;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string& name = stmt_.params[i].target->name;
    has_caller = has_caller || name == "caller";
    if (i < args.positional.size())
      variables.set(Text(name), args.positional[i]);
    else if (auto value = take_named(args, name))
      variables.set(Text(name), *value);
  }
  if (stmt_.uses_caller && !has_caller) {
    auto caller = take_named(args, "caller");
    variables.set("caller", caller ? *caller : Value::undefined("No caller defined"));
  }
  const char* what = stmt_.name.empty() ? "caller" : stmt_.name.c_str();
  if (stmt_.uses_kwargs) {
    Dict kwargs;
    for (auto& [name, value] : args.named) kwargs.set(Text(name), value);
    variables.set("kwargs", make_dict(std::move(kwargs)));
  } else if (!args.named.empty()) {
    fail("macro '{}' takes no keyword argument '{}'", what, args.named[0].first);
  }
  if (stmt_.uses_varargs) {
    auto rest = args.positional.begin() +
                static_cast<std::ptrdiff_t>(std::min(count, args.positional.size()));
    variables.set("varargs", make_list({rest, args.positional.end()}, Sequence::Kind::kTuple));
  } else if (args.positional.size() > count) {
    fail("macro '{}' takes not more than {} argument(s)", what, count);
  }
}

Value Macro::call(Interpreter& run, Args args) {
  Dict bound;
  bind(std::move(args), bound);
  Text text = run.render_in(scope_, stmt_.body, [&] {
    for (const Stmt::Param& param : stmt_.params) {
      const Value* given = bound.find(std::string_view(param.target->name));
      if (given != nullptr)
        run.assign(*param.target, *given);
      else if (param.fallback != nullptr)
        run.assign(*param.target, run.eval(*param.fallback));
      else
        run.assign(*param.target, Value::undefined(fmt::format("parameter '{}' was not provided",
                                                               param.target->name)));
    }
    for (const char* name : {"caller", "kwargs", "varargs"})
      if (const Value* value = bound.find(std::string_view(name))) run.set_variable(name, *value);
  });
  return text;
}

std::optional<Value> Macro::attribute(Interpreter&, std::string_view name) {
  if (name == "name") return Value(Text(stmt_.name));
  if (name == "arguments") {
    std::vector<Value> names;
    for (const Stmt::Param& param : stmt_.params) names.push_back(Text(param.target->name));
    return make_list(std::move(names), Sequence::Kind::kTuple);
  }
  if (name == "catch_kwargs") return Value(stmt_.uses_kwargs);
  if (name == "catch_varargs") return Value(stmt_.uses_varargs);
  if (name == "caller") return Value(stmt_.uses_caller);
  return std::nullopt;
}

Loop::Loop(Interpreter& run, const Stmt& stmt, const Value& items, Scope* scope, int depth)
    : run_(run),
      stmt_(stmt),
      scope_(scope),
      depth_(depth),
      source_(run.iterate(items)),
      filtered_(stmt.test != nullptr) {}

std::optional<Value> Loop::fetch() {
  while (next_ < source_.size()) {
    Value item = source_[next_++];
    if (!filtered_) return item;
    Scope* scope = run_.enter_scope(scope_);
    bool wanted = run_.in_scope(scope, [&] {
      run_.assign(*stmt_.target, item);
      return run_.eval(*stmt_.test).truthy();
    });
    run_.leave_scope(scope);
    if (wanted) return item;
  }
  return std::nullopt;
}

const std::optional<Value>& Loop::peek() {
  if (!std::exchange(peeked_, true)) after_ = fetch();
  return after_;
}

bool Loop::advance() {
  std::optional<Value> item = peeked_ ? std::exchange(after_, std::nullopt) : fetch();
  peeked_ = false;
  if (!item) return false;
  ++index_;
  previous_ = std::exchange(current_, std::move(*item));
  return true;
}

// Of a filtered loop: the rest is filtered now.
std::size_t Loop::length() {
  if (filtered_) {
    charge_bytes(static_cast<std::size_t>(index_ + 1) * sizeof(Value));
    std::vector<Value> rest;
    for (std::int64_t i = 0; i <= index_; ++i) rest.emplace_back();
    std::size_t done = rest.size();
    if (peeked_ && after_) rest.push_back(*after_);
    std::size_t next = rest.size();
    while (auto item = fetch()) rest.push_back(std::move(*item));
    source_ = std::move(rest);
    next_ = peeked_ ? next : done;
    filtered_ = false;
  }
  return source_.size();
}

std::optional<Value> Loop::attribute(Interpreter& run, std::string_view name) {
  auto size = [&] { return static_cast<Int>(length()); };
  Int index = index_;
  if (name == "index") return Value(index + 1);
  if (name == "index0") return Value(index);
  if (name == "first") return Value(index == 0);
  if (name == "last") return Value(!peek());
  if (name == "length") return Value(size());
  if (name == "revindex") return Value(size() - index);
  if (name == "revindex0") return Value(size() - index - 1);
  if (name == "depth") return Value(depth_ + 1);
  if (name == "depth0") return Value(depth_);
  if (name == "previtem")
    return index == 0 ? Value::undefined("there is no previous item") : previous_;
  if (name == "nextitem") return peek() ? *peek() : Value::undefined("there is no next item");
  if (name == "cycle")
    return Value(run.own<BoundMethod>(this, [](Interpreter&, const Value& self, Args args) {
      if (args.positional.empty()) fail("no items for cycling given");
      auto at = static_cast<std::size_t>(static_cast<Loop*>(self.if_object())->index_);
      return args.positional[at % args.positional.size()];
    }));
  if (name == "changed")
    return Value(run.own<BoundMethod>(this, [](Interpreter&, const Value& self, Args args) {
      auto& last = static_cast<Loop*>(self.if_object())->last_changed_;
      bool same = last && std::equal(last->begin(), last->end(), args.positional.begin(),
                                     args.positional.end(), equal);
      last = std::move(args.positional);
      return Value(!same);
    }));
  return std::nullopt;
}

Value Loop::call(Interpreter& run, Args args) {
  if (!stmt_.recursive) fail("the loop must have the 'recursive' marker to be called recursively");
  if (args.positional.size() != 1) fail("loop() takes one argument");
  return run.loop_text(stmt_, args.positional[0], scope_, depth_ + 1);
}

std::optional<Value> Namespace::attribute(Interpreter&, std::string_view name) {
  const Value* value = variables_.find(name);
  if (value == nullptr) return std::nullopt;
  return *value;
}

}  // namespace vitrine::jinja
