// Recursive descent over the tokens; parser.cpp has the statements, parser_expr.cpp the
// expressions.
#pragma once

#include "jinja/ast.h"

namespace vitrine::jinja {

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}
  Body parse_template();

 private:
  using Names = std::initializer_list<std::string_view>;

  const Token& current() const { return tokens_[at_]; }
  const Token& look() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  Token next() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }
  bool skip_op(std::string_view op);
  bool skip_name(std::string_view name);
  void expect_op(std::string_view op);
  void expect_name(std::string_view name);
  std::string expect_any_name();
  void expect(Token::Type type, const char* what);
  [[noreturn]] void fail_here(const std::string& message) const;
  [[noreturn]] void fail_at(Position at, std::string message) const;
  bool is_end(Names ends) const;

  Body statements(Names ends);
  Body block(Names ends);
  std::unique_ptr<Stmt> statement();
  std::unique_ptr<Stmt> parse_if();
  std::unique_ptr<Stmt> parse_for();
  std::unique_ptr<Stmt> parse_set();
  std::unique_ptr<Stmt> parse_macro();
  std::unique_ptr<Stmt> parse_call_block();
  std::unique_ptr<Stmt> parse_with();
  void macro_body(Stmt& macro, std::string_view end);
  void signature(Stmt& macro);
  ExprPtr assign_target(bool in_for);

  ExprPtr expression(bool conditional = true);
  ExprPtr tuple(bool conditional, std::string_view end_name = {}, bool parentheses = false,
                bool simple = false);
  ExprPtr condition();
  ExprPtr disjunction();
  ExprPtr conjunction();
  ExprPtr negation();
  ExprPtr comparison();
  ExprPtr sum();
  ExprPtr concat();
  ExprPtr product();
  ExprPtr power();
  ExprPtr unary(bool filters = true);
  ExprPtr primary();
  ExprPtr list();
  ExprPtr dict();
  ExprPtr postfix(ExprPtr node);
  ExprPtr filters(ExprPtr node);
  ExprPtr filter(ExprPtr node);
  ExprPtr test(ExprPtr node);
  ExprPtr subscript(ExprPtr node);
  ExprPtr subscribed(ExprPtr node, Position at);
  CallArgs call_args();
  ExprPtr make(Expr::Kind kind, Position at, std::vector<ExprPtr> items = {},
               std::string name = {});
  ExprPtr with_args(ExprPtr call, CallArgs args);
  ExprPtr make_integer(const Token& token);

  struct Deeper;

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  int depth_ = 0;  // of the recursion
  int loops_ = 0;  // around this place, inside the innermost macro
  // Names that the innermost macro's body uses.
  bool caller_ = false, kwargs_ = false, varargs_ = false;
};

// Limits recursion, so that nesting cannot overflow the stack.
struct Parser::Deeper {
  explicit Deeper(Parser& parser);
  ~Deeper() { --parser.depth_; }
  Parser& parser;
};

}  // namespace vitrine::jinja
