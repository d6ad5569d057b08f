// ConstraintSpec, and the compiler that turns it into a Constraint; see constraint.h.
#pragma once

#include <boost/json/value.hpp>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "grammar/budget.h"
#include "grammar/constraint.h"
#include "grammar/lru.h"

namespace vitrine {

// Tool calls: text around JSON. The text is
//
//   begin  call  (separator call)*  end        with `min_calls` to `max_calls` calls
//
// and a call is the prefix of one of the alternatives, JSON that its schema admits, its suffix.
// With `lazy`, any text may come before, and the text may end without a call: what the model says
// is free until it spells `trigger`, with which `begin` begins, and constrained from there on.
// Where `begin` is empty, text is free that does not begin as a call does. For Hermes:
//
//   begin "<tool_call>\n", trigger "<tool_call>", prefix {"name": "get_time", "arguments": ,
//   suffix }, separator "\n</tool_call>\n<tool_call>\n", end "\n</tool_call>"
struct ToolCallSpec {
  struct Alternative {
    std::string prefix;
    boost::json::value schema;  // true: any JSON
    std::string suffix;
  };
  std::vector<Alternative> alternatives;
  std::string begin, separator, end;
  std::uint64_t min_calls = 1, max_calls = 1;
  bool lazy = false;
  std::string trigger;
};

struct ConstraintSpec {
  enum class Kind : std::uint8_t {
    kJsonObject,  // any JSON object
    kJsonSchema,  // JSON that `schema` admits
    kGrammar,     // what the GBNF `text` derives
    kRegex,       // what `text` matches as a whole
    kChoice,      // one of `choices`
    kToolCalls,   // see above
  };
  Kind kind = Kind::kJsonObject;
  std::string text = {};
  boost::json::value schema = {};
  std::vector<std::string> choices = {};
  ToolCallSpec tools = {};
  // With kToolCalls: instead of calls, `before_instead` and text of this form.
  std::shared_ptr<const ConstraintSpec> instead = {};
  std::string before_instead = {};
  // Reasoning in front of the text:  begin ANYTHING end next  or  without
  struct Prelude {
    std::string begin = {}, end = {};  // around the reasoning; an empty end: there is none
    std::string next = {};             // between it and the text
    std::string without = {};          // written instead when there is no reasoning
    bool inside = false;               // `begin` is in the prompt, so reasoning cannot be skipped
    bool line_ends = false;            // one or two line ends may come before the text
    bool may_end = false;              // the text may end inside
  };
  std::optional<Prelude> prelude = {};
  // Special tokens that stand for their text, where a format uses some ("[TOOL_CALLS]").
  std::vector<std::pair<std::int32_t, std::string>> spelled_tokens = {};
  // Members of objects may come in any order; otherwise they come in the order of the schema, as
  // OpenAI's API has it.
  bool any_order = false;
  std::string name = {};  // of the field, for errors; empty: "grammar", "regex"...
};

inline constexpr std::size_t kMaxConstraintChoices = 10000;
inline constexpr std::size_t kMaxConstraintBytes = 1 << 20;
// Of a whole spec as JSON, with all of its schemas.
inline constexpr std::size_t kMaxSpecBytes = 8 << 20;

// Compiles specs and caches the results (LRU). Thread-safe.
class ConstraintCompiler {
 public:
  static constexpr std::size_t kCacheBytes = std::size_t{128} << 20;
  // Of what was compiled and of all masks: what is kept between requests.
  static constexpr std::size_t kMostBytes = kCacheBytes + grammar::kMaskStoreBytes;

  // Bytes of each token by id; empty for special tokens (see TokenTrie).
  explicit ConstraintCompiler(std::vector<std::string> pieces);

  // What was compiled, and its masks, are found again only under the same `scope`: how long this
  // takes tells nothing about others'.
  Result<std::shared_ptr<const Constraint>> compile(const ConstraintSpec& spec,
                                                    std::string_view scope = {});
  const grammar::TokenTrie& trie() const { return *trie_; }

 private:
  std::shared_ptr<const grammar::TokenTrie> trie_;
  std::shared_ptr<grammar::MaskStore> store_;
  std::mutex mutex_;
  grammar::Lru<Constraint, std::string> cache_;  // guarded by mutex_
};

// Without a vocabulary: the automaton alone, for tests and tools.
Result<grammar::Machine> compile_machine(const ConstraintSpec& spec, grammar::Budget budget = {});

}  // namespace vitrine
