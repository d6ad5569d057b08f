// GET /api/tree?depth=N&min=N: the prefix cache as a tree: where prompts agree, and where they part. For
// operators: it tells about everybody. Text only of requests that are recorded.
#include "base/json.h"
#include "base/process_clock.h"
#include "base/utf8.h"
#include "engine/engine.h"
#include "kv/prefix_tree.h"
#include "server/api.h"
#include "server/request/query.h"
#include "tokenizer/tokenizer.h"

namespace vitrine {
namespace {

constexpr std::uint64_t kMostDepth = 64, kMostMin = std::uint64_t{1} << 30;
constexpr std::size_t kMostText = 64;  // tokens from the beginning of a node

// How many tokens of each node, from its first on, a recorded text has in the same place, after the same tokens.
class Known {
 public:
  Known(const NamedPages& named, const PrefixTree& tree)
      : named_(named), tree_(tree), tokens_(tree.nodes.size()), children_(tree.nodes.size()) {
    for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
      const PrefixNode& node = tree.nodes[i];
      if (node.parent >= 0)
        children_[static_cast<std::size_t>(node.parent)].push_back(i);
      else if (!node.cut())
        roots_.push_back(i);
    }
  }
  void add(const Text& text) {
    open_ = roots_;
    while (!open_.empty()) {
      const std::size_t i = open_.back();
      open_.pop_back();
      const std::size_t same = agreed(text, tree_.nodes[i]);
      tokens_[i] = std::max(tokens_[i], same);
      if (same == length(tree_.nodes[i]))
        open_.insert(open_.end(), children_[i].begin(), children_[i].end());
    }
  }
  std::size_t tokens(std::size_t node) const { return tokens_[node]; }
  std::size_t length(const PrefixNode& node) const {
    return node.pages.size() * static_cast<std::size_t>(named_.page_size);
  }

 private:
  std::size_t agreed(const Text& text, const PrefixNode& node) const {
    int position = node.first;
    for (const std::int32_t page : node.pages)
      for (const std::int32_t token : named_.tokens_of(static_cast<std::size_t>(page))) {
        if (position >= text.length() || text.token(position) != token)
          return static_cast<std::size_t>(position - node.first);
        ++position;
      }
    return length(node);
  }

  const NamedPages& named_;
  const PrefixTree& tree_;
  std::vector<std::size_t> tokens_, roots_, open_;
  std::vector<std::vector<std::size_t>> children_;
};

json::value text_of(const Tokenizer* tokenizer, const NamedPages& named, const PrefixNode& node,
                    std::size_t known) {
  if (tokenizer == nullptr || known == 0) return nullptr;
  std::vector<std::int32_t> ids;
  for (std::size_t i = 0; i < node.pages.size() && ids.size() < kMostText; ++i)
    for (const std::int32_t id : named.tokens_of(static_cast<std::size_t>(node.pages[i])))
      if (ids.size() < std::min(known, kMostText)) ids.push_back(id);
  return json::value(utf8_sanitize(tokenizer->decode(ids)));
}

Reply tree(const Api& api, const HttpRequest& http) {
  if (!http.rights.is_operator) return operator_only(http.path);
  std::uint64_t depth = kMostDepth, least = 1;
  if (auto error = read_query(http.query, {whole_number("depth", depth, 0, kMostDepth),
                                           whole_number("min", least, 1, kMostMin)}))
    return *error;
  const NamedPages named = api.engine->named_pages();
  const std::int64_t now = process_ns();
  const auto page_size = static_cast<std::uint64_t>(named.page_size);
  const PrefixTree found =
      prefix_tree(named, {.depth = static_cast<int>(depth),
                          .pages = static_cast<std::int64_t>((least + page_size - 1) / page_size)});
  Known known(named, found);
  api.texts.visit(http, [&](const Text& text) { known.add(text); });
  json::array nodes;
  for (std::size_t i = 0; i < found.nodes.size(); ++i) {
    const PrefixNode& node = found.nodes[i];
    nodes.push_back(
        json::object{{"parent", node.parent < 0 ? json::value() : json::value(node.parent)},
                     {"first", node.first},
                     {"tokens", known.length(node)},
                     {"pages", node.pages.size()},
                     {"holders", node.holders},
                     {"last_use_ns", node.holders > 0 ? now : node.used_ns},
                     {"cut", node.cut()},
                     {"text", text_of(api.tokenizer, named, node, known.tokens(i))}});
  }
  return to_json(json::object{{"now_ns", now},
                              {"page_size", named.page_size},
                              {"pages", named.pages.size()},
                              {"tokens", named.tokens.size()},
                              {"pages_left_out", found.left_out},
                              {"nodes", std::move(nodes)}});
}

}  // namespace

extern const Endpoint kEndpoint_tree;
const Endpoint kEndpoint_tree{"GET", {"/api/tree"}, reply_from_worker<tree>};

}  // namespace vitrine
