// Functions that every template can call.
#include <algorithm>

#include "jinja/objects.h"

namespace vitrine::jinja {
namespace {

constexpr Int kMaxRange = 100'000;  // Jinja's own limit for untrusted templates
constexpr Int kMaxBound = Int{1} << 62;
constexpr std::size_t kMaxTimeFormat = 512;

Value global_range(Interpreter&, Args args) {
  Int bounds[3] = {0, 0, 1};
  std::size_t count = args.positional.size();
  if (count < 1 || count > 3 || !args.named.empty()) fail("range() takes 1 to 3 arguments");
  for (std::size_t i = 0; i < count; ++i) {
    const Value& value = need(args.positional[i]);
    if (!value.is_int() && !value.is_bool())
      fail("'{}' object cannot be interpreted as an integer", value.type_name());
    Int bound = value.as_int();
    if (bound > kMaxBound || bound < -kMaxBound) fail("range(): {} is too large", bound);
    bounds[count == 1 ? 1 : i] = bound;
  }
  auto [from, to, step] = bounds;
  if (step == 0) fail("range() arg 3 must not be zero");
  Int length = step > 0 ? (to - from + step - 1) / step : (from - to - step - 1) / -step;
  if (length > kMaxRange) fail("range() of more than {} items", kMaxRange);
  std::vector<Value> items;
  for (Int i = 0; i < length; ++i) items.emplace_back(from + i * step);
  std::string name = step == 1 ? fmt::format("range({}, {})", from, to)
                               : fmt::format("range({}, {}, {})", from, to, step);
  return make_list(std::move(items), Sequence::Kind::kRange, std::move(name));
}

// The entries that dict() and namespace() take: pairs or a dict, and keyword arguments.
Dict entries(Interpreter& run, const Args& args) {
  if (args.positional.size() > 1) fail("at most 1 positional argument is taken");
  Dict out;
  if (!args.positional.empty()) {
    const Value& from = need(args.positional[0]);
    if (const Dict* dict = from.if_dict()) {
      for (const auto& [key, value] : dict->items()) out.set(key, value);
    } else {
      for (const Value& item : run.iterate(from)) {
        std::vector<Value> pair = run.iterate(need(item));
        if (pair.size() != 2) fail("an entry of {} items; 2 are required", pair.size());
        if (!Dict::hashable(pair[0])) fail("unhashable type: '{}'", pair[0].type_name());
        out.set(pair[0], pair[1]);
      }
    }
  }
  for (const auto& [name, value] : args.named) out.set(Text(name), value);
  return out;
}

Value global_dict(Interpreter& run, Args args) { return make_dict(entries(run, args)); }

Value global_namespace(Interpreter& run, Args args) {
  auto* out = run.own<Namespace>();
  Dict variables = entries(run, args);
  for (const auto& [key, value] : variables.items()) out->set(to_text(key).view(), value);
  return out;
}

Value global_raise(Interpreter&, Args args) {
  Params params("raise_exception", std::move(args));
  Value message = params.required("message");
  params.done();
  throw Failure{ErrorCode::kInvalid, to_text(message).bytes()};
}

Value global_strftime(Interpreter& run, Args args) {
  Params params("strftime_now", std::move(args));
  Value format = params.required("format");
  params.done();
  const Text* text = format.if_string();
  if (text == nullptr || text->size() > kMaxTimeFormat)
    fail("strftime_now() takes a string of up to {} bytes", kMaxTimeFormat);
  char buffer[8192];
  // The leading byte distinguishes an empty result from one that does not fit.
  std::string pattern = "x" + text->bytes();
  std::size_t size = std::strftime(buffer, sizeof buffer, pattern.c_str(), &run.now());
  if (size == 0) fail("strftime_now(): the result is too long");
  return Text(std::string(buffer + 1, size - 1));
}

struct Cycler : Object {
  explicit Cycler(std::vector<Value> list) : items(std::move(list)) {}
  const char* type_name() const override { return "Cycler"; }
  std::optional<Value> attribute(Interpreter& run, std::string_view name) override {
    if (name == "current") return items[at];
    if (name == "next" || name == "reset") {
      auto method = name == "next" ? [](Interpreter&, const Value& self, Args) {
        auto* c = static_cast<Cycler*>(self.if_object());
        Value out = c->items[c->at];
        c->at = (c->at + 1) % c->items.size();
        return out;
      } : [](Interpreter&, const Value& self, Args) {
        static_cast<Cycler*>(self.if_object())->at = 0;
        return Value();
      };
      return Value(run.own<BoundMethod>(this, method));
    }
    return std::nullopt;
  }
  std::vector<Value> items;
  std::size_t at = 0;
};

struct Joiner : Object {
  explicit Joiner(Value text) : separator(std::move(text)) {}
  const char* type_name() const override { return "Joiner"; }
  bool callable() const override { return true; }
  Value call(Interpreter&, Args) override {
    return std::exchange(used, true) ? separator : Value("");
  }
  Value separator;
  bool used = false;
};

Value global_cycler(Interpreter& run, Args args) {
  if (args.positional.empty()) fail("at least one item has to be provided");
  return run.own<Cycler>(std::move(args.positional));
}

Value global_joiner(Interpreter& run, Args args) {
  Params params("joiner", std::move(args));
  Value separator = params.optional("sep", ", ");
  params.done();
  return run.own<Joiner>(std::move(separator));
}

}  // namespace

GlobalFunction find_global(std::string_view name) {
  constexpr std::pair<std::string_view, GlobalFunction> kGlobals[] = {
      {"range", global_range},         {"dict", global_dict},
      {"namespace", global_namespace}, {"raise_exception", global_raise},
      {"cycler", global_cycler},       {"strftime_now", global_strftime},
      {"joiner", global_joiner},
  };
  for (const auto& [key, function] : kGlobals)
    if (key == name) return function;
  return nullptr;
}

}  // namespace vitrine::jinja
