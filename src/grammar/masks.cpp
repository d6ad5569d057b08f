#include "grammar/masks.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>

#include "base/keyed_hash.h"
#include "grammar/lru.h"

namespace vitrine::grammar {

struct MaskStore {
  static constexpr std::size_t kBytes = kMaskStoreBytes / 2;

  std::mutex mutex;
  // Guarded by mutex.
  Lru<TokenMask> masks{kBytes};
  Lru<WideMask> wides{kBytes};
};

std::shared_ptr<MaskStore> make_mask_store() { return std::make_shared<MaskStore>(); }

namespace {

bool has_data(const Frame& frame) {
  return frame.kind == Frame::Kind::kCounter || frame.kind == Frame::Kind::kObject;
}

}  // namespace

Masks::Masks(const Machine& machine, const TokenTrie& trie, std::shared_ptr<MaskStore> store)
    : machine_(machine), trie_(trie), store_(std::move(store)), after_(bytes_after_rules(machine)) {
  static std::atomic<std::uint64_t> made{0};
  salt_ = keyed_mix(++made, 0x51ED270B35A3F7C1ull);
}

std::uint64_t Masks::key_of(const Config& c, const Frames& frames) const {
  std::uint64_t count = c.count;
  if (machine_.flags(c.state) & Machine::kCounted)
    count = frames.saturated(machine_.counter(machine_.extra(c.state)), count);
  return keyed_mix(c.state, count);
}

std::shared_ptr<const WideMask> Masks::wide(const Config& c, Subtree below, Frames& frames) {
  const std::size_t before = frames.size();
  Config alone{c.state, Frames::kEscape, 0};
  if (has_data(frames[c.frame])) {
    Frame copy = frames[c.frame];
    copy.parent = Frames::kEscape;
    copy.nesting = 0;
    alone.frame = frames.push(copy);
  }
  const std::uint64_t key =
      salt_ ^ keyed_mix(keyed_mix(c.state, below.begin), frames[alone.frame].hash);
  std::shared_ptr<const WideMask> found;
  {
    std::lock_guard lock(store_->mutex);
    found = store_->wides.find(key);
  }
  if (!found) {
    auto made = std::make_shared<WideMask>();
    made->inside = trie_.empty_mask();
    Walk walk(machine_, trie_, frames, made->inside);
    walk.classify(*made, (machine_.flags(c.state) & Machine::kCounted) != 0,
                  after_[machine_.rule_of(c.state)]);
    walk.run({&alone, 1}, below);
    found = made;
    std::lock_guard lock(store_->mutex);
    store_->wides.insert(key, found, made->bytes());
  }
  frames.truncate(before);
  return found;
}

void Masks::add_wide(std::vector<Config>& configs, Subtree below, Frames& frames, TokenMask& mask) {
  // Stacks that differ only further down are handled together.
  struct Group {
    std::shared_ptr<const WideMask> part;
    std::vector<Config> configs;
  };
  std::vector<Group> groups;
  std::erase_if(configs, [&](const Config& c) {
    const std::uint8_t flags = machine_.flags(c.state);
    // In the middle of a character of a counted string the count matters, and masks by state alone
    // ignore it.
    const bool within = !(flags & Machine::kCounted) && c.count > 0;
    if (!(flags & Machine::kWide) || within) return false;
    auto part = wide(c, below, frames);
    if (part->whole) return false;
    auto group = std::find_if(groups.begin(), groups.end(), [&](const Group& g) {
      return g.part == part && g.configs[0].count == c.count;
    });
    if (group == groups.end()) group = groups.insert(group, {std::move(part), {}});
    group->configs.push_back(c);
    return true;
  });
  for (const Group& group : groups) add_part(*group.part, group.configs, frames, mask);
}

void Masks::add_part(const WideMask& part, std::span<const Config> configs, Frames& frames,
                     TokenMask& mask) {
  const Config& c = configs[0];
  std::uint64_t need = 0, room = ~std::uint64_t{0};
  if (machine_.flags(c.state) & Machine::kCounted) {
    const Counter& limits = machine_.counter(machine_.extra(c.state));
    room = limits.max - c.count;
    need = limits.min - std::min(limits.min, c.count);
  }
  const TokenMask* inside = &part.inside;
  TokenMask fitting;
  if (!part.counted.empty() && part.counted[0].characters > room) {
    fitting = part.inside;
    for (const CountedToken& t : part.counted) {
      if (t.characters <= room) break;
      trie_.unmark(t.token, fitting);
    }
    inside = &fitting;
  }
  for (std::size_t w = 0; w < mask.words.size(); ++w) {
    mask.words[w] |= inside->words[w];
    mask.any = mask.any || inside->words[w] != 0;
  }
  add_endings(part, configs, {need, room}, frames, mask);
}

void Masks::add_endings(const WideMask& wide, std::span<const Config> configs,
                        const Counter& characters, Frames& frames, TokenMask& mask) {
  const std::size_t before = frames.size();
  TokenMask possible = wide.endings->empty_mask();
  std::vector<Config> after;
  Stepper stepper(machine_, frames);
  for (const Config& c : configs) {
    const Frame& own = frames[c.frame];
    stepper.resume(has_data(own) ? own.parent : c.frame, after);
  }
  if (!after.empty() && wide.endings->whole().end > 0)
    Walk(machine_, *wide.endings, frames, possible).run(after, wide.endings->whole());
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

// The widest states first: they take longest, and their frames are mostly plain returns. States
// that are not reached in time are computed on first use.
void Masks::warm_up() {
  constexpr std::chrono::milliseconds kTime{400};
  const auto start = std::chrono::steady_clock::now();
  struct Part {
    int bytes;
    StateId state;
    Subtree below;
  };
  std::vector<Part> parts;
  auto add = [&](StateId s, Subtree below) {
    const std::uint8_t flags = machine_.flags(s);
    if (!(flags & Machine::kWide) || (flags & Machine::kKey)) return;
    int bytes = 0;
    for (int b = 0; b < 256; ++b) bytes += machine_.next(s, static_cast<std::uint8_t>(b)) != kDead;
    parts.push_back({bytes, s, below});
  };
  for (StateId s = 0; s < machine_.states(); ++s) add(s, trie_.whole());
  const std::span<const TrieNode> nodes = trie_.nodes();
  for (std::uint32_t i = 0; i < nodes.size(); i = nodes[i].end)
    if (nodes[i].end - i > trie_.large())
      for (StateId s : states_after(machine_, nodes[i].byte)) add(s, trie_.below(i));
  std::stable_sort(parts.begin(), parts.end(),
                   [](const Part& a, const Part& b) { return a.bytes > b.bytes; });
  Frames frames(machine_, trie_.longest());
  for (const Part& part : parts) {
    if (std::chrono::steady_clock::now() - start > kTime) return;
    wide({part.state, Frames::kBottom, 0}, part.below, frames);
  }
}

std::shared_ptr<const TokenMask> Masks::mask(std::span<const Config> configs, Frames& frames) {
  std::uint64_t key = salt_ + configs.size();
  for (const Config& c : configs) key += keyed_mix(key_of(c, frames), frames[c.frame].hash);
  {
    std::lock_guard lock(store_->mutex);
    if (auto found = store_->masks.find(key)) return found;
  }
  auto made = std::make_shared<TokenMask>(trie_.empty_mask());
  if (!configs.empty()) {
    Walk walk(machine_, trie_, frames, *made);
    walk.on_large = [&](std::vector<Config>& at, Subtree below) {
      add_wide(at, below, frames, *made);
    };
    walk.run(configs, trie_.whole());
  }
  std::lock_guard lock(store_->mutex);
  store_->masks.insert(key, made, made->bytes());
  return made;
}

}  // namespace vitrine::grammar
