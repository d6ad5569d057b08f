// The position of a text in a Machine: a set of stacks, advanced byte by byte.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "grammar/machine.h"

namespace vitrine::grammar {

using FrameId = std::uint32_t;

// One frame of a stack; stacks share their lower parts.
struct Frame {
  enum class Kind : std::uint8_t { kBottom, kEscape, kReturn, kCounter, kObject };
  Kind kind = Kind::kBottom;
  std::uint32_t arg = 0;  // state to return to, counter, object
  FrameId parent = 0;
  std::uint32_t nesting = 0;
  std::uint64_t seen =
      0;  // kObject: labels (unordered), or the first label that may come (ordered)
  std::uint64_t count = 0;
  // Equal for stacks after which the same tokens are allowed: counts far from their limits are not
  // distinguished.
  std::uint64_t hash = 0;
};

// Frames of one matcher, each stack stored once, so that equal stacks have equal ids.
class Frames {
 public:
  // `reach`: a hash distinguishes stacks that differ within this many further bytes.
  Frames(const Machine& machine, std::uint32_t reach);

  FrameId push(Frame frame);
  const Frame& operator[](FrameId id) const { return frames_[id]; }
  std::size_t size() const { return frames_.size(); }
  // Forgets the frames from the `size`-th on.
  void truncate(std::size_t size);
  // A count's part in a hash.
  std::uint64_t saturated(const Counter& limits, std::uint64_t count) const;

  static constexpr FrameId kBottom = 0, kEscape = 1;

 private:
  std::size_t slot(const Frame& frame) const;
  void grow();

  const Machine* machine_;
  std::uint32_t reach_;
  std::vector<Frame> frames_;
  std::vector<FrameId> slots_;  // open addressing; 0: free
};

struct Config {
  StateId state;
  FrameId frame;
  std::uint64_t count;  // characters, inside a counted string
  bool operator==(const Config&) const = default;
};

// Finds duplicates in a growing list of configurations.
class ConfigIndex {
 public:
  void clear();
  // Adds `c` to `list` unless the list has it from the `from`-th on. All entries from there on must
  // have been added by this function.
  bool add(std::vector<Config>& list, std::size_t from, const Config& c);

 private:
  static constexpr std::size_t kFew = 16;  // up to here a linear search is faster
  std::size_t slot(const std::vector<Config>& list, std::size_t from, const Config& c) const;

  std::vector<std::uint32_t> slots_;  // open addressing; place in the list plus 1, 0: free
  bool used_ = false;
};

inline constexpr std::uint32_t kMaxNesting = 64;    // of containers
inline constexpr std::size_t kMaxConfigs = 512;     // stacks at a time
inline constexpr std::size_t kMaxFrames = 1 << 20;  // of one matcher

// Advances sets of configurations. Holds scratch; one per matcher or walk.
class Stepper {
 public:
  Stepper(const Machine& machine, Frames& frames) : machine_(machine), frames_(frames) {}

  // Appends to `out` the configurations that `byte` leads to from `in`, each once.
  void step(std::span<const Config> in, std::uint8_t byte, std::vector<Config>& out);
  // The same for the start of the text.
  void start(std::vector<Config>& out);
  // The same after the end of the rule above `frame`.
  void resume(FrameId frame, std::vector<Config>& out);
  // Whether the text may end after the last step; whether that step reached Frames::kEscape.
  bool ended() const { return ended_; }
  bool escaped() const { return escaped_; }
  // Whether some step left Frames::kEscape other than by the end of its rule.
  bool lost() const { return lost_; }
  // From now on characters of counted strings are counted, but limits are not applied.
  void ignore_limits() { limits_ = false; }
  // Whether the key that is being read can still become an allowed one. Answers for the frame of
  // remember_keys() are cached.
  bool key_possible(StateId s, FrameId frame);
  void remember_keys(FrameId frame) { known_frame_ = frame, known_.clear(); }
  // There were too many stacks at once, and some were dropped.
  bool overflowed() const { return overflowed_; }

 private:
  void begin(std::size_t from);
  void enter(const Config& c, std::vector<Config>& out);
  void close(std::size_t from, std::vector<Config>& out);
  void keep(const Config& c, std::vector<Config>& out);
  void add(const Config& c);
  void act(const Action& action, const Config& c);
  void leave(const Config& c);
  bool find_key(StateId s, FrameId frame) const;
  bool may_take(const Frame& object, std::uint32_t label) const;
  Frame with_key(Frame object, std::uint32_t label) const;

  const Machine& machine_;
  Frames& frames_;
  std::vector<Config> visited_;
  ConfigIndex visited_index_, out_index_;
  std::size_t out_from_ = 0;
  bool limits_ = true;
  FrameId known_frame_ = Frames::kBottom;
  std::vector<std::int8_t> known_;  // by row of reach; 0: not known yet
  bool ended_ = false, escaped_ = false, lost_ = false, overflowed_ = false;
};

}  // namespace vitrine::grammar
