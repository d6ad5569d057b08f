// A mask is exactly the set of tokens that can be accepted, whatever was kept or shared on the way.
#include "grammar/masks.h"

#include <random>

#include "base/utf8.h"
#include "grammar/test_support.h"
#include "grammar/test_vocabulary.h"

namespace vitrine::grammar {
namespace {

using namespace test;

std::vector<ConstraintSpec> specs() {
  std::vector<ConstraintSpec> out{
      {.kind = Kind::kJsonObject},
      schema(
          R"({"type":"object","properties":{"name":{"type":"string","minLength":3,"maxLength":12},
                 "tags":{"type":"array","items":{"type":"string","pattern":"^[a-z]{2,9}$"},"minItems":1,"maxItems":4},
                 "n":{"type":"integer","minimum":-20,"maximum":300},"e":{"enum":["in","on","under the \"table\""]}},
                 "required":["tags","e"],"additionalProperties":false})"),
      schema(
          R"({"type":"object","properties":{"re":{"type":"integer"},"rest":{"type":"null"}},"required":["re"],
                 "additionalProperties":{"type":"boolean"},"maxProperties":5})",
          true),
      schema(
          R"({"anyOf":[{"type":"array","items":{"$ref":"#"}},{"type":"string","maxLength":300},{"type":"number"}]})"),
      gbnf("root ::= expr\nexpr ::= term ((\"+\" | \" - \") term)*\nterm ::= [0-9]{1,3} | \"(\" "
           "expr \")\" | name\n"
           "name ::= [a-z]+ (\"::\" [a-z]+)?"),
      gbnf("root ::= (word \" \"){300,400} \".\"\nword ::= [a-z]{1,12}"),
      regex("(the |and |for )*[A-Z]{2}\\d{4}(é|ж)+"),
      {.kind = Kind::kChoice, .choices = {"con", "content", "constant", "the end"}},
  };
  ConstraintSpec tools{.kind = Kind::kToolCalls};
  tools.tools.alternatives = {{"{\"name\":\"get\",\"a\":", parse(R"({"type":"object"})"), "}"}};
  tools.tools.begin = "[name", tools.tools.end = "]", tools.tools.lazy = true;
  tools.tools.trigger = "[";
  out.push_back(tools);
  return out;
}

TEST(Masks, AreTheTokensThatCanBeAccepted) {
  ConstraintCompiler compiler(made_up_vocabulary(4000));
  const int vocab = compiler.trie().vocab();
  std::mt19937 rng(3);
  for (const ConstraintSpec& spec : specs()) {
    auto constraint = compiler.compile(spec);
    ASSERT_TRUE(constraint.ok()) << constraint.error().message;
    for (int walk = 0; walk < 6; ++walk) {
      ConstraintMatcher matcher(*constraint);
      for (int step = 0; step < 40; ++step) {
        auto mask = matcher.mask();
        std::vector<std::int32_t> allowed;
        for (std::int32_t id = 0; id < vocab; ++id)
          if (mask->test(id)) allowed.push_back(id);
        ASSERT_EQ(mask->any, !allowed.empty());
        ASSERT_TRUE(mask->any || matcher.may_end());
        // All of them are too many to try at every step.
        for (std::int32_t id = static_cast<std::int32_t>(rng() % 7); id < vocab; id += 7) {
          ConstraintMatcher ahead = matcher;
          ASSERT_EQ(ahead.accept(id), mask->test(id))
              << compiler.trie().piece(id) << " at step " << step;
        }
        if (allowed.empty()) break;
        // Long tokens are rare and interesting.
        std::int32_t next = allowed[rng() % allowed.size()];
        for (int i = 0; i < 4; ++i) {
          std::int32_t other = allowed[rng() % allowed.size()];
          if (compiler.trie().piece(other).size() > compiler.trie().piece(next).size())
            next = other;
        }
        ASSERT_TRUE(matcher.accept(next));
      }
    }
  }
}

// Every token of the vocabulary, one by one.
void expect_exact(ConstraintMatcher& matcher, const TokenTrie& trie, const std::string& grammar) {
  auto mask = matcher.mask();
  for (std::int32_t id = 0; id < trie.vocab(); ++id) {
    ConstraintMatcher ahead = matcher;
    ASSERT_EQ(ahead.accept(id), mask->test(id)) << '"' << trie.piece(id) << "\" under\n" << grammar;
  }
}

void follow_random_text(ConstraintCompiler& compiler, const std::string& grammar, int steps,
                        std::mt19937& rng) {
  auto constraint = compiler.compile(gbnf(grammar));
  ASSERT_TRUE(constraint.ok()) << constraint.error().message << '\n' << grammar;
  ConstraintMatcher matcher(*constraint);
  const int vocab = compiler.trie().vocab();
  for (int step = 0; step < steps; ++step) {
    expect_exact(matcher, compiler.trie(), grammar);
    if (::testing::Test::HasFatalFailure()) return;
    auto mask = matcher.mask();
    if (!mask->any) return;
    auto id = static_cast<std::int32_t>(rng() % vocab);
    while (!mask->test(id)) id = (id + 1) % vocab;
    ASSERT_TRUE(matcher.accept(id));
  }
}

// A rule of three parts that begins with a byte, so that it is not left-recursive.
std::string random_rule(std::mt19937& rng, int rules) {
  auto pick = [&](std::initializer_list<const char*> all) {
    return std::string(*(all.begin() + rng() % all.size()));
  };
  auto part = [&] {
    const std::string rule = "r" + std::to_string(rng() % rules);
    switch (rng() % 5) {
      case 0:
        return rule;
      case 1:
        return "(" + rule + " | " + pick({"\"the\"", "[a-z ]+", "\": \""}) + ")";
      case 2:
        return pick({"name", "blank", "[a-z]{0,20}", "[A-Za-z_]+", "[^\"\\n]*", "[a-z]{3}",
                     "[0-9a-f]{1,300}"});
      case 3:
        return pick({"\"con\"", "\" \"", "\",\"", "\"\\\"\"", "\"e\""});
      default:
        return "(" + pick({"\"re\"", "[ a-m]", "\" \" [a-z]+"}) + ")" +
               pick({"*", "+", "?", "{2,5}", "{1,300}", "{260,400}"});
    }
  };
  return pick({"\"a\"", "[a-t]", "\" \"", "\"\\\"\"", "[^ \\n]", "[ \\n]"}) + " " + part() + " " +
         part() + (rng() % 2 ? " | " + pick({"\"s\"", "[a-z ]{1,9}", "\"}\""}) : "");
}

TEST(Masks, OfRandomGrammarsAreThoseOfEachTokenAlone) {
  ConstraintCompiler compiler(made_up_vocabulary(1500));
  std::mt19937 rng(11);
  for (int i = 0; i < 30; ++i) {
    const int rules = 2 + static_cast<int>(rng() % 3);
    std::string grammar =
        "root ::= r0 name blank \"\\\"\"\nblank ::= [ ,]{0,90}\nname ::= [a-z]{0,90}\n";
    for (int r = 0; r < rules; ++r)
      grammar += fmt::format("r{} ::= {}\n", r, random_rule(rng, rules));
    // No text of it may have an end.
    if (!compile_machine(gbnf(grammar)).ok()) continue;
    follow_random_text(compiler, grammar, 8, rng);
    if (HasFatalFailure()) return;
  }
}

// Where every byte makes another stack, a walk forgets sets on the way, but nothing of the matcher.
TEST(Masks, ManyStacksInOneWalk) {
  ConstraintCompiler compiler(made_up_vocabulary(6000));
  std::string mirror = "mirror ::= \"0\"";
  for (char c : std::string("aeinorstldgu")) mirror += fmt::format(" | \"{}\" mirror \"{}\"", c, c);
  std::mt19937 rng(5);
  follow_random_text(
      compiler, "root ::= mirror \"!\" | wide \"?\"\nwide ::= [^!\\n]{0,40} \"end\"\n" + mirror, 4,
      rng);
}

// Copies are independent, and replaying the same tokens leads to the same place.
TEST(Masks, MatchersCanBeCopiedAndReplayed) {
  ConstraintCompiler compiler(made_up_vocabulary(2000));
  auto constraint = *compiler.compile(specs()[0]);
  std::mt19937 rng(4);
  ConstraintMatcher matcher(constraint);
  std::vector<std::int32_t> said;
  for (int step = 0; step < 200; ++step) {
    auto mask = matcher.mask();
    if (!mask->any) break;
    std::int32_t id = static_cast<std::int32_t>(rng() % 2000);
    while (!mask->test(id)) id = (id + 1) % 2000;
    ConstraintMatcher copy = matcher;
    ASSERT_TRUE(copy.accept(id));
    ASSERT_TRUE(matcher.accept(id));
    said.push_back(id);
  }
  ConstraintMatcher again(constraint);
  for (std::int32_t id : said) ASSERT_TRUE(again.accept(id));
  EXPECT_EQ(again.mask()->words, matcher.mask()->words);
  EXPECT_EQ(again.may_end(), matcher.may_end());
}

TEST(Masks, SpecialTokensAreNeverAllowed) {
  std::vector<std::string> pieces = byte_pieces();
  pieces.emplace_back();
  ConstraintCompiler compiler(pieces);
  ConstraintMatcher matcher(*compiler.compile(regex("[\\s\\S]*")));
  EXPECT_FALSE(matcher.mask()->test(256));
  EXPECT_FALSE(matcher.accept(256));
  EXPECT_TRUE(matcher.may_end());
}

TEST(TokenTrie, HasEveryTokenOnce) {
  TokenTrie trie({"a", "ab", "b", "", "ab", std::string(300, 'x'), "abc"});
  TokenMask mask = trie.empty_mask();
  int ends = 0;
  for (const TrieNode& node : trie.nodes())
    if (node.token >= 0) trie.mark(node.token, mask), ++ends;
  EXPECT_EQ(ends, 4);
  EXPECT_EQ(mask.words[0], 0b1010111u);
  EXPECT_EQ(trie.longest(), 3u);
}

}  // namespace
}  // namespace vitrine::grammar
