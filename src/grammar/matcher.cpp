#include "grammar/matcher.h"

#include <algorithm>
#include <bit>

#include "base/keyed_hash.h"

namespace vitrine::grammar {
namespace {

bool same(const Frame& a, const Frame& b) {
  return a.kind == b.kind && a.arg == b.arg && a.parent == b.parent && a.nesting == b.nesting &&
         a.seen == b.seen && a.count == b.count;
}

std::uint64_t required_from(const ObjectSpec& object, std::uint64_t first, std::uint64_t seen) {
  std::uint64_t missing = 0;
  for (std::uint64_t i = object.ordered ? first : 0; i < object.named; ++i)
    if (object.required[i] && (object.ordered || (seen >> i & 1) == 0)) ++missing;
  return missing;
}

}  // namespace

Frames::Frames(const Machine& machine, std::uint32_t reach)
    : machine_(&machine), reach_(reach), slots_(64, 0) {
  frames_.push_back({.kind = Frame::Kind::kBottom, .hash = 1});
  frames_.push_back({.kind = Frame::Kind::kEscape, .hash = 2});
}

std::uint64_t Frames::saturated(const Counter& limits, std::uint64_t count) const {
  const std::uint64_t need = count < limits.min ? limits.min - count : 0;
  const std::uint64_t room = count < limits.max ? limits.max - count : 0;
  return std::min<std::uint64_t>(need, reach_) << 32 | std::min<std::uint64_t>(room, reach_);
}

std::size_t Frames::slot(const Frame& frame) const {
  std::uint64_t h =
      keyed_mix(keyed_mix(frame.parent, frame.arg), keyed_mix(frame.seen, frame.count));
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = h & mask;
  while (slots_[at] != 0 && !same(frames_[slots_[at]], frame)) at = (at + 1) & mask;
  return at;
}

void Frames::grow() {
  slots_.assign(slots_.size() * 2, 0);
  for (FrameId i = 2; i < frames_.size(); ++i) slots_[slot(frames_[i])] = i;
}

FrameId Frames::push(Frame frame) {
  std::size_t at = slot(frame);
  if (slots_[at] != 0) return slots_[at];
  if (2 * frames_.size() >= slots_.size()) {
    grow();
    at = slot(frame);
  }
  std::uint64_t count = frame.count;
  if (frame.kind == Frame::Kind::kCounter) count = saturated(machine_->counter(frame.arg), count);
  if (frame.kind == Frame::Kind::kObject) {
    const ObjectSpec& object = machine_->object(frame.arg);
    count = saturated({object.min, object.max}, count);
  }
  const auto head = static_cast<std::uint64_t>(frame.kind) << 32 | frame.arg;
  frame.hash = keyed_mix(keyed_mix(frames_[frame.parent].hash, head),
                         keyed_mix(keyed_mix(frame.seen, count),
                                   frame.nesting >= kMaxNesting / 2 ? frame.nesting : 0));
  frames_.push_back(frame);
  return slots_[at] = static_cast<FrameId>(frames_.size() - 1);
}

// In reverse order of insertion, so that the remaining entries stay reachable by probing.
void Frames::truncate(std::size_t size) {
  while (frames_.size() > size) {
    slots_[slot(frames_.back())] = 0;
    frames_.pop_back();
  }
}

void ConfigIndex::clear() {
  if (used_) std::fill(slots_.begin(), slots_.end(), 0);
  used_ = false;
}

std::size_t ConfigIndex::slot(const std::vector<Config>& list, std::size_t from,
                              const Config& c) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = keyed_mix(keyed_mix(c.state, c.frame), c.count) & mask;
  while (slots_[at] != 0 && !(list[from + slots_[at] - 1] == c)) at = (at + 1) & mask;
  return at;
}

bool ConfigIndex::add(std::vector<Config>& list, std::size_t from, const Config& c) {
  const std::size_t size = list.size() - from;
  if (size < kFew) {
    if (std::find(list.begin() + static_cast<std::ptrdiff_t>(from), list.end(), c) != list.end())
      return false;
    list.push_back(c);
    return true;
  }
  if (!used_ || 2 * size >= slots_.size()) {
    slots_.assign(std::max<std::size_t>(4 * kFew, std::bit_ceil(4 * size)), 0);
    for (std::size_t i = 0; i < size; ++i)
      slots_[slot(list, from, list[from + i])] = static_cast<std::uint32_t>(i + 1);
    used_ = true;
  }
  const std::size_t at = slot(list, from, c);
  if (slots_[at] != 0) return false;
  list.push_back(c);
  slots_[at] = static_cast<std::uint32_t>(list.size() - from);
  return true;
}

void Stepper::begin(std::size_t from) {
  visited_.clear();
  visited_index_.clear();
  out_index_.clear();
  out_from_ = from;
  ended_ = escaped_ = false;
}

void Stepper::start(std::vector<Config>& out) {
  begin(out.size());
  enter({machine_.start(), Frames::kBottom, 0}, out);
}

void Stepper::step(std::span<const Config> in, std::uint8_t byte, std::vector<Config>& out) {
  begin(out.size());
  for (const Config& c : in) {
    const StateId to = machine_.next(c.state, byte);
    if (to == kDead) continue;
    std::uint64_t count = c.count;
    if (machine_.flags(c.state) & Machine::kCounted) {
      const Counter& limits = machine_.counter(machine_.extra(c.state));
      const bool ends = byte == '"';
      if (limits_ && (ends ? count < limits.min : count >= limits.max)) continue;
      count = ends ? 0 : count + 1;
    }
    enter({to, c.frame, count}, out);
  }
}

void Stepper::enter(const Config& c, std::vector<Config>& out) {
  constexpr std::uint8_t kPlain = Machine::kBytes | Machine::kWide | Machine::kCounted;
  if ((machine_.flags(c.state) & ~kPlain) == 0) {
    keep(c, out);
    return;
  }
  const std::size_t from = visited_.size();
  add(c);
  close(from, out);
}

void Stepper::resume(FrameId frame, std::vector<Config>& out) {
  begin(out.size());
  leave({0, frame, 0});
  close(0, out);
}

// The epsilon closure of the configurations visited from the `from`-th on.
void Stepper::close(std::size_t from, std::vector<Config>& out) {
  for (std::size_t i = from; i < visited_.size(); ++i) {
    const Config at = visited_[i];
    const std::uint8_t flags = machine_.flags(at.state);
    if (flags & Machine::kBytes) keep(at, out);
    if (flags & Machine::kReturn) leave(at);
    if (flags & Machine::kActions)
      for (const Action& action : machine_.actions(at.state)) act(action, at);
  }
}

void Stepper::keep(const Config& c, std::vector<Config>& out) {
  if (out.size() - out_from_ < kMaxConfigs)
    out_index_.add(out, out_from_, c);
  else
    overflowed_ = true;
}

void Stepper::add(const Config& c) {
  if (visited_.size() >= 4 * kMaxConfigs || frames_.size() > kMaxFrames) {
    overflowed_ = true;
    return;
  }
  if ((machine_.flags(c.state) & Machine::kKey) && !key_possible(c.state, c.frame)) return;
  visited_index_.add(visited_, 0, c);
}

void Stepper::leave(const Config& c) {
  const Frame& frame = frames_[c.frame];
  if (frame.kind == Frame::Kind::kBottom) ended_ = true;
  if (frame.kind == Frame::Kind::kEscape) escaped_ = true;
  if (frame.kind == Frame::Kind::kReturn) add({frame.arg, frame.parent, 0});
}

void Stepper::act(const Action& action, const Config& c) {
  const Frame top = frames_[c.frame];
  auto push = [&](Frame::Kind kind, std::uint32_t arg, std::uint32_t nesting) {
    return frames_.push({.kind = kind, .arg = arg, .parent = c.frame, .nesting = nesting});
  };
  // An escape frame stands for the part of the stack that a walk does not look at.
  if (top.kind == Frame::Kind::kEscape && action.op != Op::kCall && action.op != Op::kBeginCount &&
      action.op != Op::kBeginObject) {
    escaped_ = lost_ = true;
    return;
  }
  switch (action.op) {
    case Op::kCall: {
      const Machine::Rule& rule = machine_.rule(action.arg);
      if (rule.container && top.nesting >= kMaxNesting) return;
      if (action.tail) return add({rule.start, c.frame, 0});
      return add({rule.start,
                  push(Frame::Kind::kReturn, action.to, top.nesting + (rule.container ? 1 : 0)),
                  0});
    }
    case Op::kBeginCount:
      return add({action.to, push(Frame::Kind::kCounter, action.arg, top.nesting), 0});
    case Op::kBeginObject:
      return add({action.to, push(Frame::Kind::kObject, action.arg, top.nesting), 0});
    case Op::kAgain: {
      if (top.count >= machine_.counter(top.arg).max) return;
      Frame next = top;
      ++next.count;
      return add({action.to, frames_.push(next), 0});
    }
    case Op::kEndCount:
      if (top.count >= machine_.counter(top.arg).min) add({action.to, top.parent, 0});
      return;
    case Op::kOpenKey:
      return add({action.to, c.frame, 0});  // the key's state decides
    case Op::kKey:
      if (may_take(top, action.arg)) add({action.to, frames_.push(with_key(top, action.arg)), 0});
      return;
    case Op::kEndObject: {
      const ObjectSpec& object = machine_.object(top.arg);
      if (top.count >= object.min && required_from(object, top.seen, top.seen) == 0)
        add({action.to, top.parent, 0});
      return;
    }
    case Op::kCounted:
      return;
  }
}

bool Stepper::key_possible(StateId s, FrameId frame) {
  if (frame != known_frame_) return find_key(s, frame);
  const std::uint32_t row = machine_.extra(s);
  if (known_.size() <= row) known_.resize(row + 1, 0);
  if (known_[row] == 0) known_[row] = find_key(s, frame) ? 1 : -1;
  return known_[row] > 0;
}

bool Stepper::find_key(StateId s, FrameId id) const {
  const Frame& frame = frames_[id];
  if (frame.kind != Frame::Kind::kObject) return true;
  std::span<const std::uint64_t> row = machine_.reach(s);
  for (std::size_t w = 0; w < row.size(); ++w)
    for (std::uint64_t bits = row[w]; bits != 0; bits &= bits - 1)
      if (may_take(frame, static_cast<std::uint32_t>(64 * w) +
                              static_cast<std::uint32_t>(__builtin_ctzll(bits))))
        return true;
  return false;
}

Frame Stepper::with_key(Frame frame, std::uint32_t label) const {
  const ObjectSpec& object = machine_.object(frame.arg);
  ++frame.count;
  if (object.ordered)
    frame.seen = std::min<std::uint64_t>(label + 1, object.named);
  else if (label < object.named)
    frame.seen |= std::uint64_t{1} << label;
  return frame;
}

// Whether the key is allowed, and every key that is still required can follow it.
bool Stepper::may_take(const Frame& frame, std::uint32_t label) const {
  const ObjectSpec& object = machine_.object(frame.arg);
  const bool named = label < object.named;
  if (object.ordered) {
    if (named && label < frame.seen) return false;
    const std::uint64_t end = named ? label : object.named;
    for (std::uint64_t i = frame.seen; i < end; ++i)
      if (object.required[i]) return false;
  } else if (named && (frame.seen >> label & 1) != 0) {
    return false;
  }
  const Frame after = with_key(frame, label);
  if (after.count > object.max) return false;
  if (required_from(object, after.seen, after.seen) > object.max - after.count) return false;
  if (after.count >= object.min || object.labels > object.named) return true;
  std::uint64_t left =
      object.named -
      (object.ordered ? after.seen : static_cast<std::uint64_t>(__builtin_popcountll(after.seen)));
  return left >= object.min - after.count;
}

}  // namespace vitrine::grammar
