#include <algorithm>
#include <charconv>

#include "jinja/parser.h"

namespace vitrine::jinja {
namespace {

constexpr int kMaxTreeDepth = 300;  // of an expression: also a + b + c + ...

template <typename... Items>
std::vector<ExprPtr> list_of(Items... items) {
  std::vector<ExprPtr> out;
  (out.push_back(std::move(items)), ...);
  return out;
}

}  // namespace

ExprPtr Parser::make(Expr::Kind kind, Position at, std::vector<ExprPtr> items, std::string name) {
  auto out = std::make_unique<Expr>();
  out->kind = kind;
  out->at = at;
  for (const ExprPtr& item : items)
    if (item) out->depth = std::max(out->depth, item->depth + 1);
  if (out->depth > kMaxTreeDepth)
    fail_at(at, fmt::format("an expression of more than {} levels", kMaxTreeDepth));
  out->items = std::move(items);
  out->name = std::move(name);
  return out;
}

ExprPtr Parser::with_args(ExprPtr call, CallArgs args) {
  auto deepen = [&](const ExprPtr& item) {
    if (item) call->depth = std::max(call->depth, item->depth + 1);
  };
  for (const ExprPtr& item : args.positional) deepen(item);
  for (const auto& [name, item] : args.named) deepen(item);
  deepen(args.star);
  deepen(args.star_star);
  if (call->depth > kMaxTreeDepth)
    fail_at(call->at, fmt::format("an expression of more than {} levels", kMaxTreeDepth));
  call->args = std::move(args);
  return call;
}

ExprPtr Parser::expression(bool conditional) {
  Deeper deeper(*this);
  return conditional ? condition() : disjunction();
}

// One expression, or several between commas as a tuple. `end_name`: a name that ends it.
ExprPtr Parser::tuple(bool conditional, std::string_view end_name, bool parentheses, bool simple) {
  Deeper deeper(*this);
  Position at = current().at;
  std::vector<ExprPtr> items;
  bool is_tuple = false;
  while (true) {
    if (!items.empty()) expect_op(",");
    bool end = current().is(Token::Type::kVariableEnd) || current().is(Token::Type::kBlockEnd) ||
               current().is_op(")") || (!end_name.empty() && current().is_name(end_name));
    if (end) break;
    items.push_back(simple ? primary() : expression(conditional));
    if (!current().is_op(",")) break;
    is_tuple = true;
  }
  if (!is_tuple && !items.empty()) return std::move(items[0]);
  if (!is_tuple && !parentheses) fail_here("expected an expression");
  return make(Expr::Kind::kTuple, at, std::move(items));
}

ExprPtr Parser::condition() {
  ExprPtr out = disjunction();
  while (current().is_name("if")) {
    Position at = next().at;
    ExprPtr test = disjunction();
    ExprPtr otherwise;
    if (skip_name("else")) {
      Deeper deeper(*this);
      otherwise = condition();
    }
    out = make(Expr::Kind::kCondition, at,
               list_of(std::move(out), std::move(test), std::move(otherwise)));
  }
  return out;
}

ExprPtr Parser::disjunction() {
  ExprPtr out = conjunction();
  while (current().is_name("or")) {
    Position at = next().at;
    out = make(Expr::Kind::kOr, at, list_of(std::move(out), conjunction()));
  }
  return out;
}

ExprPtr Parser::conjunction() {
  ExprPtr out = negation();
  while (current().is_name("and")) {
    Position at = next().at;
    out = make(Expr::Kind::kAnd, at, list_of(std::move(out), negation()));
  }
  return out;
}

ExprPtr Parser::negation() {
  if (!current().is_name("not")) return comparison();
  Deeper deeper(*this);
  Position at = next().at;
  return make(Expr::Kind::kNot, at, list_of(negation()));
}

ExprPtr Parser::comparison() {
  constexpr std::string_view kOps[] = {"==", "!=", "<", "<=", ">", ">="};
  std::vector<ExprPtr> items = list_of(sum());
  std::vector<std::string> ops;
  Position at = current().at;
  while (true) {
    if (current().is(Token::Type::kOperator) &&
        std::find(std::begin(kOps), std::end(kOps), current().text) != std::end(kOps)) {
      ops.push_back(next().text);
    } else if (skip_name("in")) {
      ops.emplace_back("in");
    } else if (current().is_name("not") && look().is_name("in")) {
      next(), next();
      ops.emplace_back("not in");
    } else {
      break;
    }
    items.push_back(sum());
  }
  if (ops.empty()) return std::move(items[0]);
  ExprPtr out = make(Expr::Kind::kCompare, at, std::move(items));
  out->ops = std::move(ops);
  return out;
}

ExprPtr Parser::sum() {
  ExprPtr out = concat();
  while (current().is_op("+") || current().is_op("-")) {
    Token op = next();
    out = make(Expr::Kind::kBinary, op.at, list_of(std::move(out), concat()), op.text);
  }
  return out;
}

ExprPtr Parser::concat() {
  Position at = current().at;
  std::vector<ExprPtr> items = list_of(product());
  while (skip_op("~")) items.push_back(product());
  if (items.size() == 1) return std::move(items[0]);
  return make(Expr::Kind::kConcat, at, std::move(items));
}

ExprPtr Parser::product() {
  ExprPtr out = power();
  while (current().is_op("*") || current().is_op("/") || current().is_op("//") ||
         current().is_op("%")) {
    Token op = next();
    out = make(Expr::Kind::kBinary, op.at, list_of(std::move(out), power()), op.text);
  }
  return out;
}

// Left to right, unlike Python.
ExprPtr Parser::power() {
  ExprPtr out = unary();
  while (current().is_op("**")) {
    Position at = next().at;
    out = make(Expr::Kind::kBinary, at, list_of(std::move(out), unary()), "**");
  }
  return out;
}

ExprPtr Parser::unary(bool with_filters) {
  Deeper deeper(*this);
  ExprPtr out;
  Position at = current().at;
  if (skip_op("-"))
    out = make(Expr::Kind::kNegate, at, list_of(unary(false)));
  else if (skip_op("+"))
    out = make(Expr::Kind::kPlus, at, list_of(unary(false)));
  else
    out = primary();
  out = postfix(std::move(out));
  return with_filters ? filters(std::move(out)) : std::move(out);
}

ExprPtr Parser::make_integer(const Token& token) {
  std::string_view digits = token.text;
  int base = 10;
  if (digits.size() > 2 && digits[0] == '0') {
    char kind = static_cast<char>(digits[1] | 0x20);
    base = kind == 'x' ? 16 : kind == 'o' ? 8 : kind == 'b' ? 2 : 10;
    if (base != 10) digits.remove_prefix(2);
  }
  std::uint64_t value = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (error != std::errc() || end != digits.data() + digits.size())
    fail_at(token.at, fmt::format("'{}' is not an integer of up to 64 bits", token.text));
  ExprPtr out = make(Expr::Kind::kConstant, token.at);
  out->value = Value(static_cast<Int>(value));
  return out;
}

ExprPtr Parser::primary() {
  Token token = current();
  ExprPtr out;
  auto constant = [&](Value value) {
    out = make(Expr::Kind::kConstant, token.at);
    out->value = std::move(value);
  };
  switch (token.type) {
    case Token::Type::kName:
      next();
      if (token.text == "true" || token.text == "True") {
        constant(true);
      } else if (token.text == "false" || token.text == "False") {
        constant(false);
      } else if (token.text == "none" || token.text == "None") {
        constant(None{});
      } else {
        caller_ = caller_ || token.text == "caller";
        kwargs_ = kwargs_ || token.text == "kwargs";
        varargs_ = varargs_ || token.text == "varargs";
        out = make(Expr::Kind::kName, token.at, {}, token.text);
      }
      return out;
    case Token::Type::kString: {
      std::string text;
      while (current().is(Token::Type::kString)) text += next().text;
      constant(Text(std::move(text)));
      return out;
    }
    case Token::Type::kInteger:
      next();
      return make_integer(token);
    case Token::Type::kFloat:
      next();
      constant(std::strtod(token.text.c_str(), nullptr));
      return out;
    default:
      break;
  }
  if (skip_op("(")) {
    out = tuple(true, {}, true);
    expect_op(")");
    return out;
  }
  if (token.is_op("[")) return list();
  if (token.is_op("{")) return dict();
  fail_here("expected an expression");
}

ExprPtr Parser::list() {
  Position at = next().at;
  std::vector<ExprPtr> items;
  while (!current().is_op("]")) {
    if (!items.empty()) expect_op(",");
    if (current().is_op("]")) break;
    items.push_back(expression());
  }
  expect_op("]");
  return make(Expr::Kind::kList, at, std::move(items));
}

ExprPtr Parser::dict() {
  Position at = next().at;
  std::vector<ExprPtr> items;
  while (!current().is_op("}")) {
    if (!items.empty()) expect_op(",");
    if (current().is_op("}")) break;
    items.push_back(expression());
    expect_op(":");
    items.push_back(expression());
  }
  expect_op("}");
  return make(Expr::Kind::kDict, at, std::move(items));
}

ExprPtr Parser::postfix(ExprPtr node) {
  while (true) {
    if (current().is_op(".") || current().is_op("[")) {
      node = subscript(std::move(node));
    } else if (current().is_op("(")) {
      Position at = current().at;
      CallArgs args = call_args();
      node = with_args(make(Expr::Kind::kCall, at, list_of(std::move(node))), std::move(args));
    } else {
      return node;
    }
  }
}

ExprPtr Parser::filters(ExprPtr node) {
  while (true) {
    if (skip_op("|")) {
      node = filter(std::move(node));
    } else if (current().is_name("is")) {
      node = test(std::move(node));
    } else if (current().is_op("(")) {
      Position at = current().at;
      CallArgs args = call_args();
      node = with_args(make(Expr::Kind::kCall, at, list_of(std::move(node))), std::move(args));
    } else {
      return node;
    }
  }
}

ExprPtr Parser::filter(ExprPtr node) {
  Position at = current().at;
  std::string name = expect_any_name();
  while (skip_op(".")) name += "." + expect_any_name();
  CallArgs args;
  if (current().is_op("(")) args = call_args();
  return with_args(make(Expr::Kind::kFilter, at, list_of(std::move(node)), std::move(name)),
                   std::move(args));
}

ExprPtr Parser::test(ExprPtr node) {
  Position at = next().at;
  bool negated = skip_name("not");
  std::string name = expect_any_name();
  while (skip_op(".")) name += "." + expect_any_name();
  CallArgs args;
  const Token& token = current();
  bool argument = token.is(Token::Type::kName) || token.is(Token::Type::kString) ||
                  token.is(Token::Type::kInteger) || token.is(Token::Type::kFloat) ||
                  token.is_op("[") || token.is_op("{");
  if (token.is_op("(")) {
    args = call_args();
  } else if (argument && !token.is_name("else") && !token.is_name("or") && !token.is_name("and")) {
    if (token.is_name("is")) fail_here("tests with 'is' cannot follow each other");
    args.positional.push_back(postfix(primary()));
  }
  ExprPtr out = with_args(make(Expr::Kind::kTest, at, list_of(std::move(node)), std::move(name)),
                          std::move(args));
  return negated ? make(Expr::Kind::kNot, at, list_of(std::move(out))) : std::move(out);
}

ExprPtr Parser::subscript(ExprPtr node) {
  Token token = next();
  if (token.text == ".") {
    Token name = next();
    if (name.is(Token::Type::kName))
      return make(Expr::Kind::kAttribute, token.at, list_of(std::move(node)), name.text);
    if (!name.is(Token::Type::kInteger)) fail_at(name.at, "expected a name or a number");
    return make(Expr::Kind::kItem, token.at, list_of(std::move(node), make_integer(name)));
  }
  ExprPtr out = subscribed(std::move(node), token.at);
  expect_op("]");
  return out;
}

ExprPtr Parser::subscribed(ExprPtr node, Position at) {
  ExprPtr begin, end, step;
  if (!current().is_op(":")) {
    begin = expression();
    if (current().is_op(",")) {  // a tuple as the key
      std::vector<ExprPtr> items = list_of(std::move(begin));
      while (skip_op(",")) items.push_back(expression());
      begin = make(Expr::Kind::kTuple, at, std::move(items));
    }
    if (!current().is_op(":"))
      return make(Expr::Kind::kItem, at, list_of(std::move(node), std::move(begin)));
  }
  next();
  if (!current().is_op(":") && !current().is_op("]")) end = expression();
  if (skip_op(":") && !current().is_op("]")) step = expression();
  return make(Expr::Kind::kSlice, at,
              list_of(std::move(node), std::move(begin), std::move(end), std::move(step)));
}

CallArgs Parser::call_args() {
  CallArgs out;
  Position at = current().at;
  expect_op("(");
  auto ensure = [&](bool ok) {
    if (!ok) fail_at(at, "arguments in an order that is not allowed");
  };
  bool comma = false;
  while (!current().is_op(")")) {
    if (comma) {
      expect_op(",");
      if (current().is_op(")")) break;
    }
    comma = true;
    if (skip_op("*")) {
      ensure(!out.star && !out.star_star);
      out.star = expression();
    } else if (skip_op("**")) {
      ensure(!out.star_star);
      out.star_star = expression();
    } else if (current().is(Token::Type::kName) && look().is_op("=")) {
      ensure(!out.star_star);
      std::string name = next().text;
      next();
      out.named.emplace_back(std::move(name), expression());
    } else {
      ensure(!out.star && !out.star_star && out.named.empty());
      out.positional.push_back(expression());
    }
  }
  expect_op(")");
  return out;
}

}  // namespace vitrine::jinja
