#include "grammar/masks.h"

#include <algorithm>
#include <atomic>

namespace vitrine::grammar {
namespace {

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = (a ^ (b * 0x9E3779B97F4A7C15ull)) * 0xBF58476D1CE4E5B9ull;
  return x ^ (x >> 32);
}

using Characters = std::vector<std::pair<std::uint8_t, std::int32_t>>;

// Most characters first; by counting, as there are few different numbers of them.
void sort_by_characters(Characters& all) {
  std::array<std::size_t, 257> begin{};
  for (const auto& [characters, token] : all) ++begin[255 - characters + 1];
  for (std::size_t i = 1; i < begin.size(); ++i) begin[i] += begin[i - 1];
  Characters sorted(all.size());
  for (const auto& entry : all) sorted[begin[255 - entry.first]++] = entry;
  all = std::move(sorted);
}

bool has_data(const Frame& frame) {
  return frame.kind == Frame::Kind::kCounter || frame.kind == Frame::Kind::kObject;
}

}  // namespace

// One walk. With `other`, tokens whose fate is decided below the walk's own frame are gathered into
// a tree instead of being marked.
class Masks::Walk {
 public:
  Walk(const Machine& machine, const TokenTrie& trie, Frames& frames, TokenMask& mask,
       std::vector<TrieNode>* other)
      : machine_(machine),
        trie_(trie),
        frames_(frames),
        stepper_(machine, frames),
        mask_(mask),
        other_(other),
        levels_(trie.longest() + 1) {}

  // Counts characters into `characters` instead of holding them against their limits.
  void count_freely(Characters& characters) {
    limits_ = false;
    characters_ = &characters;
    stepper_.ignore_limits();
  }

  void run(std::span<const TrieNode> nodes, const Config& from) {
    nodes_ = nodes;
    stepper_.remember_keys(from.frame);
    levels_[0].one = from, levels_[0].ones = 1;
    levels_[0].frames = frames_.size();
    levels_[0].escaped = false;
    for (std::uint32_t i = 0; i < nodes.size();) {
      const TrieNode& node = nodes[i];
      const Level& above = levels_[node.depth - 1];
      Level& here = levels_[node.depth];
      if (above.frames != frames_.size()) frames_.truncate(above.frames);
      const bool alive = advance(above, node.byte, here);
      if (other_ != nullptr && above.escaped) {
        path_[node.depth] = i;
        if (!alive) {
          gather_all(i);
          i = node.end;
          continue;
        }
      } else if (!alive) {
        i = node.end;
        continue;
      }
      path_[node.depth] = i;
      here.escaped = here.escaped || above.escaped;
      if (node.token >= 0) {
        if (characters_ == nullptr)
          trie_.mark(node.token, mask_);
        else if (here.ones == 0)
          gather(i);  // it closes the string, which the count has a say in
        else
          count(here.one.count, node.token);
      }
      ++i;
    }
    frames_.truncate(levels_[0].frames);
    while (!open_.empty()) shut();
  }

 private:
  // Most of the time there is one configuration, which stands in the level itself.
  struct Level {
    Config one{};
    std::size_t ones = 0;         // how many there are
    std::vector<Config> configs;  // all of them, if more than one
    std::size_t frames = 0;
    bool escaped = false;  // here or above

    std::span<const Config> all() const {
      return ones == 1 ? std::span(&one, 1) : std::span<const Config>(configs);
    }
  };

  // Whether the text may be what the path spells.
  bool advance(const Level& above, std::uint8_t byte, Level& here) {
    here.ones = 0;
    here.escaped = false;
    if (above.ones == 1) {
      const Config& c = above.one;
      const std::uint8_t from = machine_.flags(c.state);
      const StateId to = machine_.next(c.state, byte);
      if (to == kDead) return false;
      constexpr std::uint8_t kPlain =
          Machine::kBytes | Machine::kWide | Machine::kCounted | Machine::kKey;
      const std::uint8_t flags = machine_.flags(to);
      const bool counts = (from & Machine::kCounted) != 0;
      if ((flags & ~kPlain) == 0 && !(counts && byte == '"')) {
        if (counts && limits_ && c.count >= machine_.counter(machine_.extra(c.state)).max)
          return false;
        if ((flags & Machine::kKey) && !stepper_.key_possible(to, c.frame)) return false;
        here.one = {to, c.frame, c.count + (counts ? 1 : 0)};
        here.ones = 1;
        here.frames = frames_.size();
        return true;
      }
    }
    here.configs.clear();
    stepper_.step(above.all(), byte, here.configs);
    here.ones = here.configs.size();
    if (here.ones == 1) here.one = here.configs[0];
    here.frames = frames_.size();
    here.escaped = stepper_.escaped();
    return here.ones > 0 || stepper_.ended() || stepper_.escaped();
  }

  void shut() {
    (*other_)[open_.back().second].end = static_cast<std::uint32_t>(other_->size());
    open_.pop_back();
  }

  void count(std::uint64_t characters, std::int32_t token) {
    trie_.mark(token, mask_);
    characters_->emplace_back(static_cast<std::uint8_t>(characters), token);
  }

  // Copies a token's node, with the path to it.
  void gather(std::uint32_t i) {
    while (!open_.empty() && i >= nodes_[open_.back().first].end) shut();
    for (std::size_t depth = open_.size() + 1; depth <= nodes_[i].depth; ++depth) {
      const std::uint32_t node = path_[depth];
      open_.emplace_back(node, static_cast<std::uint32_t>(other_->size()));
      other_->push_back(nodes_[node]);
      if (node != i) other_->back().token = -1;
    }
  }

  void gather_all(std::uint32_t top) {
    for (std::uint32_t i = top; i < nodes_[top].end; ++i) {
      path_[nodes_[i].depth] = i;
      if (nodes_[i].token >= 0) gather(i);
    }
  }

  const Machine& machine_;
  const TokenTrie& trie_;
  Frames& frames_;
  Stepper stepper_;
  TokenMask& mask_;
  std::vector<TrieNode>* other_;
  bool limits_ = true;
  Characters* characters_ = nullptr;
  std::vector<Level> levels_;
  std::span<const TrieNode> nodes_;
  std::array<std::uint32_t, 256> path_{};
  std::vector<std::pair<std::uint32_t, std::uint32_t>> open_;  // node, its copy; by depth
};

Masks::Masks(const Machine& machine, const TokenTrie& trie, std::shared_ptr<MaskStore> store)
    : machine_(machine), trie_(trie), store_(std::move(store)) {
  static std::atomic<std::uint64_t> made{0};
  salt_ = mix(++made, 0x51ED270B35A3F7C1ull);
}

std::uint64_t Masks::key_of(const Config& c, const Frames& frames) const {
  std::uint64_t count = c.count;
  if (machine_.flags(c.state) & Machine::kCounted)
    count = frames.saturated(machine_.counter(machine_.extra(c.state)), count);
  return mix(c.state, count);
}

std::shared_ptr<const WideMask> Masks::wide(const Config& c, Frames& frames) {
  const Frame own = frames[c.frame];
  const std::size_t before = frames.size();
  Config alone{c.state, Frames::kEscape, 0};
  if (has_data(own)) {
    Frame copy = own;
    copy.parent = Frames::kEscape;
    copy.nesting = 0;
    alone.frame = frames.push(copy);
  }
  const std::uint64_t key = salt_ ^ mix(c.state, frames[alone.frame].hash);
  std::shared_ptr<const WideMask> found;
  {
    std::lock_guard lock(store_->mutex);
    found = store_->wides.find(key);
  }
  if (!found) {
    auto made = std::make_shared<WideMask>();
    made->inside = trie_.empty_mask();
    Walk walk(machine_, trie_, frames, made->inside, &made->other);
    if (machine_.flags(c.state) & Machine::kCounted) walk.count_freely(made->characters);
    walk.run(trie_.nodes(), alone);
    made->other.shrink_to_fit();
    sort_by_characters(made->characters);
    found = made;
    std::lock_guard lock(store_->mutex);
    store_->wides.insert(key, found, made->bytes());
  }
  frames.truncate(before);
  return found;
}

void Masks::add_wide(const Config& c, Frames& frames, TokenMask& mask) {
  auto part = wide(c, frames);
  std::uint64_t room = ~std::uint64_t{0};
  if (machine_.flags(c.state) & Machine::kCounted)
    room = machine_.counter(machine_.extra(c.state)).max - c.count;
  const TokenMask* inside = &part->inside;
  TokenMask fitting;
  if (!part->characters.empty() && part->characters[0].first > room) {
    fitting = part->inside;
    for (const auto& [characters, token] : part->characters) {
      if (characters <= room) break;
      trie_.unmark(token, fitting);
    }
    inside = &fitting;
  }
  for (std::size_t w = 0; w < mask.words.size(); ++w) {
    mask.words[w] |= inside->words[w];
    mask.any = mask.any || inside->words[w] != 0;
  }
  Walk(machine_, trie_, frames, mask, nullptr).run(part->other, c);
}

// The widest first: they take the longest, and their frames are mostly plain returns.
void Masks::warm_up() {
  constexpr std::size_t kMost = 96;
  Frames frames(machine_, trie_.longest());
  std::vector<std::pair<int, StateId>> states;
  for (StateId s = 0; s < machine_.states(); ++s) {
    const std::uint8_t flags = machine_.flags(s);
    if (!(flags & Machine::kWide) || (flags & Machine::kKey)) continue;
    int bytes = 0;
    for (int b = 0; b < 256; ++b) bytes += machine_.next(s, static_cast<std::uint8_t>(b)) != kDead;
    states.emplace_back(-bytes, s);
  }
  std::sort(states.begin(), states.end());
  states.resize(std::min(states.size(), kMost));
  for (auto [bytes, s] : states) wide({s, Frames::kBottom, 0}, frames);
}

std::shared_ptr<const TokenMask> Masks::mask(std::span<const Config> configs, Frames& frames) {
  std::uint64_t key = salt_ + configs.size();
  for (const Config& c : configs) key += mix(key_of(c, frames), frames[c.frame].hash);
  {
    std::lock_guard lock(store_->mutex);
    if (auto found = store_->masks.find(key)) return found;
  }
  auto made = std::make_shared<TokenMask>(trie_.empty_mask());
  const std::size_t before = frames.size();
  for (const Config& c : configs) {
    if (machine_.flags(c.state) & Machine::kWide)
      add_wide(c, frames, *made);
    else
      Walk(machine_, trie_, frames, *made, nullptr).run(trie_.nodes(), c);
  }
  frames.truncate(before);
  std::lock_guard lock(store_->mutex);
  store_->masks.insert(key, made, made->bytes());
  return made;
}

}  // namespace vitrine::grammar
