#include "grammar/masks.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <unordered_map>

#include "grammar/lru.h"

namespace vitrine::grammar {

// A token of a counted string, or one that leaves a rule, with the characters it has until then.
struct CountedToken {
  std::int32_t token;
  std::uint8_t characters;
};

// What is decided by a wide state and its own frame.
struct WideMask {
  TokenMask inside;  // tokens that may come whatever is under the state
  // In a counted string: the tokens of `inside`, most characters first. The count itself is not
  // looked at, so that one mask serves all counts.
  std::vector<CountedToken> counted;
  // What tokens have after the end of the rule, each once, and the tokens by it.
  std::unique_ptr<TokenTrie> endings;
  std::vector<std::vector<CountedToken>> by_ending;
  bool whole = false;  // none of this: the state is walked as a narrow one

  std::size_t bytes() const {
    std::size_t total = sizeof(*this) + inside.bytes() + counted.size() * sizeof(CountedToken);
    for (std::size_t i = 0; i < by_ending.size(); ++i)
      total += by_ending[i].size() * sizeof(CountedToken) + 64 + 16 * endings->piece(i).size();
    return total;
  }
};

struct MaskStore {
  static constexpr std::size_t kBytes = std::size_t{64} << 20;

  std::mutex mutex;
  // Guarded by mutex.
  Lru<TokenMask> masks{kBytes};
  Lru<WideMask> wides{kBytes};
};

std::shared_ptr<MaskStore> make_mask_store() { return std::make_shared<MaskStore>(); }

namespace {

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = (a ^ (b * 0x9E3779B97F4A7C15ull)) * 0xBF58476D1CE4E5B9ull;
  return x ^ (x >> 32);
}

bool has_data(const Frame& frame) {
  return frame.kind == Frame::Kind::kCounter || frame.kind == Frame::Kind::kObject;
}

// Most characters first; by counting, as there are few different numbers of them.
void sort_by_characters(std::vector<CountedToken>& all) {
  std::array<std::size_t, 257> begin{};
  for (const CountedToken& t : all) ++begin[255 - t.characters + 1];
  for (std::size_t i = 1; i < begin.size(); ++i) begin[i] += begin[i - 1];
  std::vector<CountedToken> sorted(all.size());
  for (const CountedToken& t : all) sorted[begin[255 - t.characters]++] = t;
  all = std::move(sorted);
}

// One walk of a tree through the machine. Marks what may come.
//
// The machine is determinised on the way: a node is a step from one set of configurations by one
// byte to another, and most nodes repeat one that was taken before. Frames of known sets are kept
// until the end of the walk; when there are too many sets, those off the path are forgotten.
class Walk {
 public:
  Walk(const Machine& machine, const TokenTrie& trie, Frames& frames, TokenMask& mask)
      : machine_(machine), trie_(trie), frames_(frames), stepper_(machine, frames), mask_(mask) {}

  // Gathers into `wide` what is decided without looking below Frames::kEscape.
  void classify(WideMask& wide, bool counted) {
    wide_ = &wide;
    counted_ = counted;
    if (counted) stepper_.ignore_limits();
  }

  void run(std::span<const Config> from) {
    const std::size_t before = frames_.size();
    path_sets_[0] = find_set(from, false);
    stepper_.remember_keys(from[0].frame);
    const std::span<const TrieNode> nodes = trie_.nodes();
    for (std::uint32_t i = 0; i < nodes.size() && gathered_ < kMaxGathered;) {
      const TrieNode& node = nodes[i];
      const SetId above = path_sets_[node.depth - 1];
      path_[node.depth - 1] = static_cast<char>(node.byte);
      SetId here = next_[above * 256 + node.byte];
      if (here == kUnknown) here = step(node.depth, node.byte);
      if (here == kNowhere) {
        if (wide_ != nullptr && !escapes_.empty()) gather(i);
        i = node.end;
        continue;
      }
      path_sets_[node.depth] = here;
      if (wide_ != nullptr)
        classify(node, sets_[here]);
      else if (node.token >= 0)
        trie_.mark(node.token, mask_);
      ++i;
    }
    frames_.truncate(before);
    if (wide_ != nullptr) finish();
  }

 private:
  struct Set {
    std::vector<Config> configs;
    bool escaped = false;
  };
  using SetId = std::int32_t;
  static constexpr SetId kUnknown = -1, kNowhere = -2;
  static constexpr std::size_t kMaxSets = 2048;
  struct Escape {
    std::uint32_t end;        // of the nodes below
    std::uint8_t depth;       // after so many bytes
    std::uint8_t characters;  // of a counted string
  };

  // Where the set above a node of that depth goes by `byte`; kNowhere: the text cannot be that.
  SetId step(std::size_t depth, std::uint8_t byte) {
    std::vector<Config> to;
    stepper_.step(sets_[path_sets_[depth - 1]].configs, byte, to);
    SetId found = kNowhere;
    if (!to.empty() || stepper_.ended() || stepper_.escaped()) {
      if (sets_.size() == kMaxSets) forget(depth, to);
      found = find_set(to, stepper_.escaped());
    }
    next_[path_sets_[depth - 1] * 256 + byte] = found;
    return found;
  }

  SetId find_set(std::span<const Config> configs, bool escaped) {
    std::uint64_t key = escaped ? 1 : 2;
    for (const Config& c : configs) key += mix(mix(c.state, c.frame), c.count);
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
    next_.resize(sets_.size() * 256, kUnknown);
    return id;
  }

  // All but the sets above a node of that depth, and the frames that only the others had. A frame
  // is older than those that stand on it.
  void forget(std::size_t depth, std::span<const Config> also) {
    std::vector<Set> path;
    FrameId last = 0;
    for (std::size_t d = 0; d < depth; ++d) path.push_back(sets_[path_sets_[d]]);
    for (const Set& set : path)
      for (const Config& c : set.configs) last = std::max(last, c.frame);
    for (const Config& c : also) last = std::max(last, c.frame);
    frames_.truncate(std::max<std::size_t>(last + 1, Frames::kEscape + 1));
    sets_.clear(), next_.clear(), ids_of_sets_.clear();
    for (std::size_t d = 0; d < depth; ++d)
      path_sets_[d] = find_set(path[d].configs, path[d].escaped);
  }

  void classify(const TrieNode& node, const Set& here) {
    if (node.token >= 0 && !(counted_ && here.configs.empty())) {
      trie_.mark(node.token, mask_);
      if (counted_)
        wide_->counted.push_back({node.token, static_cast<std::uint8_t>(here.configs[0].count)});
    }
    const Set& above = sets_[path_sets_[node.depth - 1]];
    note_escape(node, here.escaped, above.configs.empty() ? 0 : above.configs[0].count);
  }

  // From here on, tokens may be what the rule's caller has next.
  void note_escape(const TrieNode& node, bool escaped, std::uint64_t characters) {
    const auto index = static_cast<std::uint32_t>(&node - trie_.nodes().data());
    while (!escapes_.empty() && index >= escapes_.back().end) escapes_.pop_back();
    // A token may leave and be inside at once; then it is marked, and its endings do not matter.
    if (!escaped) return;
    escapes_.push_back({node.end, node.depth, static_cast<std::uint8_t>(characters)});
    if (counted_ && node.token >= 0) add("", {node.token, escapes_.back().characters});
  }

  // The tokens from node `top` on down leave the rule somewhere on their way, or die.
  void gather(std::uint32_t top) {
    const std::span<const TrieNode> nodes = trie_.nodes();
    while (!escapes_.empty() && top >= escapes_.back().end) escapes_.pop_back();
    if (escapes_.empty()) return;
    for (std::uint32_t i = top; i < nodes[top].end; ++i) {
      path_[nodes[i].depth - 1] = static_cast<char>(nodes[i].byte);
      if (nodes[i].token < 0) continue;
      for (const Escape& e : escapes_)
        add(std::string_view(path_.data() + e.depth, nodes[i].depth - e.depth),
            {nodes[i].token, e.characters});
    }
  }

  void add(std::string_view ending, CountedToken token) {
    ++gathered_;
    auto [it, added] = ids_.try_emplace(std::string(ending), wide_->by_ending.size());
    if (added) wide_->by_ending.emplace_back();
    wide_->by_ending[it->second].push_back(token);
  }

  void finish() {
    wide_->whole = stepper_.lost() || gathered_ >= kMaxGathered;
    if (wide_->whole) ids_.clear(), wide_->by_ending.clear(), wide_->counted.clear();
    sort_by_characters(wide_->counted);
    std::vector<std::string> endings(ids_.size());
    for (const auto& [ending, id] : ids_) endings[id] = ending;
    wide_->endings = std::make_unique<TokenTrie>(std::move(endings));
  }

  const Machine& machine_;
  const TokenTrie& trie_;
  Frames& frames_;
  Stepper stepper_;
  TokenMask& mask_;
  std::array<char, 256> path_{};
  std::array<SetId, 257> path_sets_{};
  std::vector<Set> sets_;
  std::vector<SetId> next_;  // by set and byte
  std::unordered_multimap<std::uint64_t, SetId> ids_of_sets_;

  WideMask* wide_ = nullptr;
  bool counted_ = false;         // counts are noted, not held against their limits
  std::vector<Escape> escapes_;  // on the path
  // A rule that may end everywhere (a name, a number) has so many endings that a walk costs less.
  static constexpr std::size_t kMaxGathered = 16384;
  std::size_t gathered_ = 0;                          // tokens by their endings
  std::unordered_map<std::string, std::size_t> ids_;  // of endings
};

}  // namespace

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
  const std::size_t before = frames.size();
  Config alone{c.state, Frames::kEscape, 0};
  if (has_data(frames[c.frame])) {
    Frame copy = frames[c.frame];
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
    Walk walk(machine_, trie_, frames, made->inside);
    walk.classify(*made, (machine_.flags(c.state) & Machine::kCounted) != 0);
    walk.run({&alone, 1});
    found = made;
    std::lock_guard lock(store_->mutex);
    store_->wides.insert(key, found, made->bytes());
  }
  frames.truncate(before);
  return found;
}

bool Masks::add_wide(const Config& c, Frames& frames, TokenMask& mask) {
  auto part = wide(c, frames);
  if (part->whole) return false;
  std::uint64_t need = 0, room = ~std::uint64_t{0};
  if (machine_.flags(c.state) & Machine::kCounted) {
    const Counter& limits = machine_.counter(machine_.extra(c.state));
    room = limits.max - c.count;
    need = limits.min - std::min(limits.min, c.count);
  }
  const TokenMask* inside = &part->inside;
  TokenMask fitting;
  if (!part->counted.empty() && part->counted[0].characters > room) {
    fitting = part->inside;
    for (const CountedToken& t : part->counted) {
      if (t.characters <= room) break;
      trie_.unmark(t.token, fitting);
    }
    inside = &fitting;
  }
  for (std::size_t w = 0; w < mask.words.size(); ++w) {
    mask.words[w] |= inside->words[w];
    mask.any = mask.any || inside->words[w] != 0;
  }
  add_endings(*part, c, {need, room}, frames, mask);
  return true;
}

void Masks::add_endings(const WideMask& wide, const Config& c, const Counter& characters,
                        Frames& frames, TokenMask& mask) {
  const Frame& own = frames[c.frame];
  const FrameId under = has_data(own) ? own.parent : c.frame;
  const std::size_t before = frames.size();
  TokenMask possible = wide.endings->empty_mask();
  std::vector<Config> after;
  Stepper(machine_, frames).resume(under, after);
  if (!after.empty()) Walk(machine_, *wide.endings, frames, possible).run(after);
  frames.truncate(before);
  for (std::size_t i = 0; i < wide.by_ending.size(); ++i) {
    if (!wide.endings->piece(static_cast<std::int32_t>(i)).empty() &&
        !possible.test(static_cast<std::int32_t>(i)))
      continue;
    for (const CountedToken& t : wide.by_ending[i])
      if (t.characters >= characters.min && t.characters <= characters.max)
        trie_.mark(t.token, mask);
  }
}

// The widest first: they take the longest, and their frames are mostly plain returns. What is not
// reached in time is worked out when it is needed.
void Masks::warm_up() {
  constexpr std::chrono::milliseconds kTime{400};
  const auto start = std::chrono::steady_clock::now();
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
  for (auto [bytes, s] : states) {
    if (std::chrono::steady_clock::now() - start > kTime) return;
    wide({s, Frames::kBottom, 0}, frames);
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
  std::vector<Config> narrow;
  for (const Config& c : configs) {
    const std::uint8_t flags = machine_.flags(c.state);
    // In the middle of a character of a counted string the count matters, and what is decided by
    // the state alone does not have it.
    const bool within = !(flags & Machine::kCounted) && c.count > 0;
    if (!(flags & Machine::kWide) || within || !add_wide(c, frames, *made)) narrow.push_back(c);
  }
  if (!narrow.empty()) Walk(machine_, trie_, frames, *made).run(narrow);
  std::lock_guard lock(store_->mutex);
  store_->masks.insert(key, made, made->bytes());
  return made;
}

}  // namespace vitrine::grammar
