#include "grammar/masks.h"

#include <algorithm>
#include <atomic>

namespace vitrine::grammar {
namespace {

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = (a ^ (b * 0x9E3779B97F4A7C15ull)) * 0xBF58476D1CE4E5B9ull;
  return x ^ (x >> 32);
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

  void run(std::span<const TrieNode> nodes, const Config& from) {
    nodes_ = nodes;
    levels_[0] = {{from}, frames_.size(), false};
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
      if (node.token >= 0) trie_.mark(node.token, mask_);
      ++i;
    }
    frames_.truncate(levels_[0].frames);
    while (!open_.empty()) shut();
  }

 private:
  struct Level {
    std::vector<Config> configs;
    std::size_t frames = 0;
    bool escaped = false;  // here or above
  };

  // Whether the text may be what the path spells.
  bool advance(const Level& above, std::uint8_t byte, Level& here) {
    here.configs.clear();
    here.escaped = false;
    if (above.configs.size() == 1) {
      const Config& c = above.configs[0];
      if (!(machine_.flags(c.state) & Machine::kCounted)) {
        const StateId to = machine_.next(c.state, byte);
        if (to == kDead) return false;
        constexpr std::uint8_t kPlain = Machine::kBytes | Machine::kWide | Machine::kCounted;
        if ((machine_.flags(to) & ~kPlain) == 0) {
          here.configs.push_back({to, c.frame, c.count});
          here.frames = frames_.size();
          return true;
        }
      }
    }
    stepper_.step(above.configs, byte, here.configs);
    here.frames = frames_.size();
    here.escaped = stepper_.escaped();
    return !here.configs.empty() || stepper_.ended() || stepper_.escaped();
  }

  void shut() {
    (*other_)[open_.back().second].end = static_cast<std::uint32_t>(other_->size());
    open_.pop_back();
  }

  // Copies every token from node `top` on down, with the path to it.
  void gather_all(std::uint32_t top) {
    for (std::uint32_t i = top; i < nodes_[top].end; ++i) {
      path_[nodes_[i].depth] = i;
      if (nodes_[i].token < 0) continue;
      while (!open_.empty() && i >= nodes_[open_.back().first].end) shut();
      for (std::size_t depth = open_.size() + 1; depth <= nodes_[i].depth; ++depth) {
        const std::uint32_t node = path_[depth];
        open_.emplace_back(node, static_cast<std::uint32_t>(other_->size()));
        other_->push_back(nodes_[node]);
        if (node != i) other_->back().token = -1;
      }
    }
  }

  const Machine& machine_;
  const TokenTrie& trie_;
  Frames& frames_;
  Stepper stepper_;
  TokenMask& mask_;
  std::vector<TrieNode>* other_;
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
  Config alone{c.state, Frames::kEscape, c.count};
  if (has_data(own)) {
    Frame copy = own;
    copy.parent = Frames::kEscape;
    copy.nesting = 0;
    alone.frame = frames.push(copy);
  }
  const std::uint64_t key = salt_ ^ mix(key_of(c, frames), frames[alone.frame].hash);
  std::shared_ptr<const WideMask> found;
  {
    std::lock_guard lock(store_->mutex);
    found = store_->wides.find(key);
  }
  if (!found) {
    auto made = std::make_shared<WideMask>();
    made->inside = trie_.empty_mask();
    Walk(machine_, trie_, frames, made->inside, &made->other).run(trie_.nodes(), alone);
    made->other.shrink_to_fit();
    found = made;
    std::lock_guard lock(store_->mutex);
    store_->wides.insert(key, found, made->inside.bytes() + made->other.size() * sizeof(TrieNode));
  }
  frames.truncate(before);
  return found;
}

void Masks::warm_up() {
  Frames frames(machine_, trie_.longest());
  int room = 32;
  for (StateId s = 0; s < machine_.states() && room > 0; ++s) {
    const std::uint8_t flags = machine_.flags(s);
    if (!(flags & Machine::kWide) || (flags & Machine::kKey)) continue;
    wide({s, Frames::kBottom, 0}, frames);
    --room;
  }
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
    if (!(machine_.flags(c.state) & Machine::kWide)) {
      Walk(machine_, trie_, frames, *made, nullptr).run(trie_.nodes(), c);
      continue;
    }
    auto part = wide(c, frames);
    for (std::size_t w = 0; w < made->words.size(); ++w) made->words[w] |= part->inside.words[w];
    made->any = made->any || part->inside.any;
    Walk(machine_, trie_, frames, *made, nullptr).run(part->other, c);
  }
  frames.truncate(before);
  std::lock_guard lock(store_->mutex);
  store_->masks.insert(key, made, made->bytes());
  return made;
}

}  // namespace vitrine::grammar
