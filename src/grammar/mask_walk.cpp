#include "grammar/mask_walk.h"

#include <algorithm>

#include "base/keyed_hash.h"

namespace vitrine::grammar {
namespace {

// Most characters first; by counting, as there are few different numbers of them.
void sort_by_characters(std::vector<CountedToken>& all) {
  std::array<std::size_t, 257> begin{};
  for (const CountedToken& t : all) ++begin[255 - t.characters + 1];
  for (std::size_t i = 1; i < begin.size(); ++i) begin[i] += begin[i - 1];
  std::vector<CountedToken> sorted(all.size());
  for (const CountedToken& t : all) sorted[begin[255 - t.characters]++] = t;
  all = std::move(sorted);
}

}  // namespace

std::size_t WideMask::bytes() const {
  std::size_t total = sizeof(*this) + inside.bytes() + counted.size() * sizeof(CountedToken);
  for (std::size_t i = 0; i < by_ending.size(); ++i)
    total += by_ending[i].size() * sizeof(CountedToken) + 64 +
             16 * endings->piece(static_cast<std::int32_t>(i)).size();
  return total;
}

void Walk::classify(WideMask& wide, bool counted, const ByteSet& after) {
  wide_ = &wide;
  counted_ = counted;
  after_ = after;
  if (counted) stepper_.ignore_limits();
}

void Walk::run(std::span<const Config> from, Subtree below) {
  own_frames_ = frames_.size();
  top_ = below.depth;
  stepper_.remember_keys(from[0].frame);
  const SetId first = hand_over(find_set(from, false), below);
  path_sets_[top_] = first;
  const TrieNode* const nodes = trie_.nodes().data();
  const std::uint32_t large = on_large ? trie_.large() : ~std::uint32_t{0};
  const std::uint32_t end = first == kNowhere ? below.begin : below.end;
  for (std::uint32_t i = below.begin; i < end && !too_much();) {
    const TrieNode node = nodes[i];
    path_[node.depth - 1] = static_cast<char>(node.byte);
    SetId here = next(path_sets_[node.depth - 1], node.byte);
    if (here == kUnknown) here = step(node.depth, node.byte);
    if (here == kNowhere) {
      if (!escapes_.empty()) gather(i);
      i = node.end;
      continue;
    }
    path_sets_[node.depth] = here;
    if (wide_ != nullptr)
      classify(i, sets_[here]);
    else if (node.token >= 0)
      trie_.mark(node, mask_);
    const bool done = node.end - i > large &&
                      (path_sets_[node.depth] = hand_over(here, trie_.below(i))) == kNowhere;
    i = done ? node.end : i + 1;
  }
  frames_.truncate(own_frames_);
  if (wide_ != nullptr) finish();
}

// The rest of a set above a large subtree, after on_large.
Walk::SetId Walk::hand_over(SetId set, Subtree below) {
  if (!on_large) return set;
  std::vector<Config> rest = sets_[set].configs;
  on_large(rest, below);
  if (rest.size() == sets_[set].configs.size()) return set;
  return rest.empty() ? kNowhere : find_set(rest, false);
}

// The set reached by `byte` from the set above a node of that depth; kNowhere: the byte is not
// allowed.
Walk::SetId Walk::step(std::size_t depth, std::uint8_t byte) {
  if (work_ > kMaxWork && depth > 1) return kNowhere;
  std::vector<Config> to;
  stepper_.step(sets_[path_sets_[depth - 1]].configs, byte, to);
  work_ += sets_[path_sets_[depth - 1]].configs.size() + to.size();
  SetId found = kNowhere;
  if (!to.empty() || stepper_.ended() || stepper_.escaped()) {
    if (sets_.size() >= kMaxSets) forget(depth, to);
    found = find_set(to, stepper_.escaped());
  }
  next(path_sets_[depth - 1], byte) = found;
  return found;
}

Walk::SetId Walk::find_set(std::span<const Config> configs, bool escaped) {
  std::uint64_t key = escaped ? 1 : 2;
  for (const Config& c : configs) key += keyed_mix(keyed_mix(c.state, c.frame), c.count);
  auto [begin, end] = ids_of_sets_.equal_range(key);
  for (auto it = begin; it != end; ++it) {
    const Set& set = sets_[it->second];
    if (set.escaped == escaped && set.configs.size() == configs.size() &&
        std::is_permutation(configs.begin(), configs.end(), set.configs.begin()))
      return it->second;
  }
  const auto id = static_cast<SetId>(sets_.size());
  ids_of_sets_.emplace(key, id);
  sets_.push_back({{configs.begin(), configs.end()}, escaped});
  next_.resize(sets_.size() * machine_.classes(), kUnknown);
  return id;
}

// Forgets all sets except those on the path above a node of that depth, and the frames that only
// the others used. A frame is older than the frames above it.
void Walk::forget(std::size_t depth, std::span<const Config> also) {
  std::vector<Set> path;
  std::size_t frames = own_frames_;
  for (std::size_t d = top_; d < depth; ++d) path.push_back(sets_[path_sets_[d]]);
  for (const Set& set : path)
    for (const Config& c : set.configs) frames = std::max<std::size_t>(frames, c.frame + 1);
  for (const Config& c : also) frames = std::max<std::size_t>(frames, c.frame + 1);
  frames_.truncate(frames);
  sets_.clear(), next_.clear(), ids_of_sets_.clear();
  for (std::size_t d = top_; d < depth; ++d)
    path_sets_[d] = find_set(path[d - top_].configs, path[d - top_].escaped);
}

void Walk::classify(std::uint32_t index, const Set& here) {
  const TrieNode& node = trie_.nodes()[index];
  if (node.token >= 0 && !(counted_ && here.configs.empty())) {
    trie_.mark(node, mask_);
    if (counted_)
      wide_->counted.push_back({node.token, static_cast<std::uint8_t>(here.configs[0].count)});
  }
  // From here on, a token may continue in the rule's caller. A token that is also possible inside
  // the rule is marked already, so its endings do not matter.
  if (!here.escaped) return;
  while (!escapes_.empty() && index >= escapes_.back().end) escapes_.pop_back();
  const Set& above = sets_[path_sets_[node.depth - 1]];
  const std::uint64_t characters = above.configs.empty() ? 0 : above.configs[0].count;
  escapes_.push_back({node.end, node.depth, static_cast<std::uint8_t>(characters)});
  if (counted_ && node.token >= 0) add("", {node.token, escapes_.back().characters});
}

// The tokens at and below node `top` either leave the rule on their way or are not allowed.
void Walk::gather(std::uint32_t top) {
  const std::span<const TrieNode> nodes = trie_.nodes();
  while (!escapes_.empty() && top >= escapes_.back().end) escapes_.pop_back();
  left_.clear();
  for (const Escape& e : escapes_)
    if (after_[static_cast<std::uint8_t>(path_[e.depth])]) left_.push_back(e);
  if (left_.empty()) return;
  for (std::uint32_t i = top; i < nodes[top].end; ++i) {
    path_[nodes[i].depth - 1] = static_cast<char>(nodes[i].byte);
    if (nodes[i].token < 0) continue;
    for (const Escape& e : left_)
      add(std::string_view(path_.data() + e.depth, nodes[i].depth - e.depth),
          {nodes[i].token, e.characters});
  }
}

void Walk::add(std::string_view ending, CountedToken token) {
  ++gathered_;
  auto [it, added] = ids_.try_emplace(std::string(ending), wide_->by_ending.size());
  if (added) wide_->by_ending.emplace_back();
  wide_->by_ending[it->second].push_back(token);
}

void Walk::finish() {
  wide_->whole = stepper_.lost() || too_much();
  if (wide_->whole) {
    wide_->inside = {};
    ids_.clear(), wide_->by_ending.clear(), wide_->counted.clear();
  }
  sort_by_characters(wide_->counted);
  std::vector<std::string> endings(ids_.size());
  for (const auto& [ending, id] : ids_) endings[id] = ending;
  wide_->endings = std::make_unique<TokenTrie>(std::move(endings));
}

}  // namespace vitrine::grammar
