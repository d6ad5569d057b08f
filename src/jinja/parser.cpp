#include "jinja/parser.h"

#include <algorithm>

namespace vitrine::jinja {
namespace {

constexpr int kMaxDepth = 150;  // of statements and brackets inside each other

std::string described(const Token& token) {
  switch (token.type) {
    case Token::Type::kEnd:
      return "the end of the template";
    case Token::Type::kData:
      return "text";
    case Token::Type::kVariableBegin:
      return "'{{'";
    case Token::Type::kVariableEnd:
      return "'}}'";
    case Token::Type::kBlockBegin:
      return "'{%'";
    case Token::Type::kBlockEnd:
      return "'%}'";
    case Token::Type::kString:
      return "a string";
    default:
      return fmt::format("'{}'", token.text);
  }
}

std::unique_ptr<Stmt> make_stmt(Stmt::Kind kind, Position at) {
  auto out = std::make_unique<Stmt>();
  out->kind = kind;
  out->at = at;
  return out;
}

}  // namespace

Parser::Deeper::Deeper(Parser& p) : parser(p) {
  if (++parser.depth_ > kMaxDepth)
    parser.fail_here(fmt::format("nested more than {} levels deep", kMaxDepth));
}

bool Parser::skip_op(std::string_view op) {
  if (!current().is_op(op)) return false;
  next();
  return true;
}

bool Parser::skip_name(std::string_view name) {
  if (!current().is_name(name)) return false;
  next();
  return true;
}

void Parser::expect_op(std::string_view op) {
  if (!skip_op(op)) fail_here(fmt::format("expected '{}', found {}", op, described(current())));
}

void Parser::expect_name(std::string_view name) {
  if (!skip_name(name))
    fail_here(fmt::format("expected '{}', found {}", name, described(current())));
}

std::string Parser::expect_any_name() {
  if (!current().is(Token::Type::kName))
    fail_here(fmt::format("expected a name, found {}", described(current())));
  return next().text;
}

void Parser::expect(Token::Type type, const char* what) {
  if (!current().is(type))
    fail_here(fmt::format("expected {}, found {}", what, described(current())));
  next();
}

void Parser::fail_here(const std::string& message) const { fail_at(current().at, message); }
void Parser::fail_at(Position at, std::string message) const {
  throw SyntaxFailure{std::move(message), at};
}

bool Parser::is_end(Names ends) const {
  return current().is(Token::Type::kName) &&
         std::find(ends.begin(), ends.end(), current().text) != ends.end();
}

Body Parser::parse_template() {
  Body out = statements({});
  VT_CHECK(current().is(Token::Type::kEnd));
  return out;
}

// Up to one of the end tags (at its name then) or, when there are none, to the end of the template.
Body Parser::statements(Names ends) {
  Body out;
  while (!current().is(Token::Type::kEnd)) {
    Token token = next();
    if (token.is(Token::Type::kData)) {
      out.push_back(make_stmt(Stmt::Kind::kData, token.at));
      out.back()->value = Text(std::move(token.text));
    } else if (token.is(Token::Type::kVariableBegin)) {
      out.push_back(make_stmt(Stmt::Kind::kOutput, token.at));
      out.back()->expr = tuple(true);
      expect(Token::Type::kVariableEnd, "'}}'");
    } else {
      if (ends.size() > 0 && is_end(ends)) return out;
      out.push_back(statement());
      expect(Token::Type::kBlockEnd, "'%}'");
    }
  }
  if (ends.size() > 0)
    fail_here(fmt::format("the template ends where '{}' is missing", fmt::join(ends, "' or '")));
  return out;
}

// The rest of an opening tag, and what follows up to one of the end tags.
Body Parser::block(Names ends) {
  Deeper deeper(*this);
  skip_op(":");
  expect(Token::Type::kBlockEnd, "'%}'");
  return statements(ends);
}

std::unique_ptr<Stmt> Parser::statement() {
  Position at = current().at;
  std::string name = expect_any_name();
  std::unique_ptr<Stmt> out;
  if (name == "if") {
    out = parse_if();
  } else if (name == "for") {
    out = parse_for();
  } else if (name == "set") {
    out = parse_set();
  } else if (name == "macro") {
    out = parse_macro();
  } else if (name == "call") {
    out = parse_call_block();
  } else if (name == "with") {
    out = parse_with();
  } else if (name == "filter") {
    out = make_stmt(Stmt::Kind::kFilter, at);
    out->expr = filter(make(Expr::Kind::kBlockText, at));
    while (current().is_op("|")) {
      next();
      out->expr = filter(std::move(out->expr));
    }
    out->body = block({"endfilter"});
    next();
  } else if (name == "print") {
    out = make_stmt(Stmt::Kind::kScope, at);
    while (!current().is(Token::Type::kBlockEnd)) {
      if (!out->body.empty()) expect_op(",");
      out->body.push_back(make_stmt(Stmt::Kind::kOutput, at));
      out->body.back()->expr = expression();
    }
  } else if (name == "generation") {
    out = make_stmt(Stmt::Kind::kScope, at);
    int loops = std::exchange(loops_, 0);
    out->body = block({"endgeneration"});
    loops_ = loops;
    next();
  } else if (name == "break" || name == "continue") {
    if (loops_ == 0) fail_at(at, fmt::format("'{}' outside of a loop", name));
    out = make_stmt(name == "break" ? Stmt::Kind::kBreak : Stmt::Kind::kContinue, at);
  } else {
    fail_at(at, fmt::format("unknown or unsupported tag '{}'", name));
  }
  out->at = at;
  return out;
}

std::unique_ptr<Stmt> Parser::parse_if() {
  auto out = make_stmt(Stmt::Kind::kIf, current().at);
  while (true) {
    Stmt::Branch branch;
    branch.test = tuple(false);
    branch.body = block({"elif", "else", "endif"});
    out->branches.push_back(std::move(branch));
    std::string end = next().text;
    if (end == "elif") continue;
    if (end == "else") {
      out->otherwise = block({"endif"});
      next();
    }
    return out;
  }
}

std::unique_ptr<Stmt> Parser::parse_for() {
  auto out = make_stmt(Stmt::Kind::kFor, current().at);
  out->target = assign_target(true);
  expect_name("in");
  out->expr = tuple(false, "recursive");
  if (skip_name("if")) out->test = expression();
  out->recursive = skip_name("recursive");
  ++loops_;
  out->body = block({"endfor", "else"});
  --loops_;
  if (next().text == "else") {
    out->otherwise = block({"endfor"});
    next();
  }
  return out;
}

std::unique_ptr<Stmt> Parser::parse_set() {
  auto out = make_stmt(Stmt::Kind::kSet, current().at);
  out->target = assign_target(false);
  if (skip_op("=")) {
    out->expr = tuple(true);
    return out;
  }
  out->kind = Stmt::Kind::kSetBlock;
  if (current().is_op("|")) {
    out->expr = make(Expr::Kind::kBlockText, current().at);
    while (skip_op("|")) out->expr = filter(std::move(out->expr));
  }
  out->body = block({"endset"});
  next();
  return out;
}

void Parser::signature(Stmt& macro) {
  expect_op("(");
  bool fallback = false;
  while (!current().is_op(")")) {
    if (!macro.params.empty()) expect_op(",");
    Stmt::Param param;
    Position at = current().at;
    param.target = make(Expr::Kind::kName, at, {}, expect_any_name());
    if (skip_op("=")) {
      param.fallback = expression();
      fallback = true;
    } else if (fallback) {
      fail_at(at, "a parameter without a default follows one with a default");
    }
    macro.params.push_back(std::move(param));
  }
  expect_op(")");
}

void Parser::macro_body(Stmt& macro, std::string_view end) {
  int loops = std::exchange(loops_, 0);
  bool caller = std::exchange(caller_, false), kwargs = std::exchange(kwargs_, false),
       varargs = std::exchange(varargs_, false);
  macro.body = block({end});
  next();
  macro.uses_caller = std::exchange(caller_, caller);
  macro.uses_kwargs = std::exchange(kwargs_, kwargs);
  macro.uses_varargs = std::exchange(varargs_, varargs);
  loops_ = loops;
}

std::unique_ptr<Stmt> Parser::parse_macro() {
  auto out = make_stmt(Stmt::Kind::kMacro, current().at);
  out->name = expect_any_name();
  signature(*out);
  macro_body(*out, "endmacro");
  return out;
}

std::unique_ptr<Stmt> Parser::parse_call_block() {
  auto out = make_stmt(Stmt::Kind::kCall, current().at);
  if (current().is_op("(")) signature(*out);
  out->expr = expression();
  if (out->expr->kind != Expr::Kind::kCall) fail_at(out->at, "expected a call");
  macro_body(*out, "endcall");
  return out;
}

std::unique_ptr<Stmt> Parser::parse_with() {
  auto out = make_stmt(Stmt::Kind::kWith, current().at);
  while (!current().is(Token::Type::kBlockEnd)) {
    if (!out->params.empty()) expect_op(",");
    Stmt::Param param;
    param.target = assign_target(true);
    expect_op("=");
    param.fallback = expression();
    out->params.push_back(std::move(param));
  }
  out->body = block({"endwith"});
  next();
  return out;
}

// A name, a tuple of such, or (not in loops) an attribute of a namespace.
ExprPtr Parser::assign_target(bool in_for) {
  Position at = current().at;
  if (!in_for && look().is_op(".")) {
    ExprPtr object = make(Expr::Kind::kName, at, {}, expect_any_name());
    next();
    std::string name = expect_any_name();
    std::vector<ExprPtr> items;
    items.push_back(std::move(object));
    return make(Expr::Kind::kAttribute, at, std::move(items), std::move(name));
  }
  ExprPtr out = tuple(false, in_for ? "in" : "", false, true);
  auto assignable = [](const auto& self, const Expr& e) -> bool {
    if (e.kind == Expr::Kind::kName) return true;
    return e.kind == Expr::Kind::kTuple &&
           std::all_of(e.items.begin(), e.items.end(), [&](auto& i) { return self(self, *i); });
  };
  if (!assignable(assignable, *out)) fail_at(at, "this cannot be assigned to");
  return out;
}

Body parse(std::string_view source) { return Parser(tokenize(source)).parse_template(); }

}  // namespace vitrine::jinja
