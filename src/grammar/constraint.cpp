#include "grammar/constraint.h"

namespace vitrine {

using grammar::Config;
using grammar::Frames;
using grammar::Stepper;
using grammar::TokenMask;

Constraint::Constraint(grammar::Machine machine, std::shared_ptr<const grammar::TokenTrie> trie,
                       std::shared_ptr<grammar::MaskStore> store,
                       std::vector<std::pair<std::int32_t, std::string>> spelled)
    : machine_(std::move(machine)),
      trie_(std::move(trie)),
      spelled_(std::move(spelled)),
      masks_(machine_, *trie_, std::move(store)) {
  masks_.warm_up();
}

ConstraintMatcher::ConstraintMatcher(std::shared_ptr<const Constraint> constraint)
    : constraint_(std::move(constraint)),
      frames_(constraint_->machine(), constraint_->trie().longest()) {
  Stepper stepper(constraint_->machine(), frames_);
  stepper.start(configs_);
  ended_ = stepper.ended();
}

std::shared_ptr<const TokenMask> ConstraintMatcher::mask() {
  auto mask = constraint_->masks().mask(configs_, frames_);
  std::shared_ptr<TokenMask> own;
  const std::vector<Config> from = in_framing();
  for (const auto& [id, text] : constraint_->spelled()) {
    if (from.empty() || id >= constraint_->trie().vocab()) continue;
    ConstraintMatcher ahead = *this;
    if (!ahead.accept_from(from, text)) continue;
    if (!own) own = std::make_shared<TokenMask>(*mask);
    own->set(id);
  }
  return own ? own : mask;
}

bool ConstraintMatcher::accept(std::int32_t token) {
  if (token < 0 || token >= constraint_->trie().vocab()) return false;
  for (const auto& [id, text] : constraint_->spelled())
    if (id == token) return accept_from(in_framing(), text);
  const std::string& piece = constraint_->trie().piece(token);
  return !piece.empty() && accept_text(piece);
}

bool ConstraintMatcher::follow(std::string_view text, std::vector<Config>& now, bool& ended,
                               bool& overflowed) {
  Stepper stepper(constraint_->machine(), frames_);
  std::vector<Config> next;
  for (char c : text) {
    next.clear();
    stepper.step(now, static_cast<std::uint8_t>(c), next);
    ended = stepper.ended();
    now.swap(next);
    if (now.empty() && !ended) break;
  }
  overflowed = stepper.overflowed();
  return !now.empty() || ended;
}

std::vector<Config> ConstraintMatcher::in_framing() const {
  std::vector<Config> out;
  if (constraint_->spelled().empty()) return out;
  const grammar::Machine& machine = constraint_->machine();
  for (const Config& c : configs_)
    if (machine.rule(machine.rule_of(c.state)).framing) out.push_back(c);
  return out;
}

bool ConstraintMatcher::accept_text(std::string_view text) { return accept_from(configs_, text); }

bool ConstraintMatcher::accept_from(std::vector<Config> from, std::string_view text) {
  const std::size_t before = frames_.size();
  std::vector<Config> now = from;
  bool ended = ended_, overflowed = false;
  bool found = follow(text, now, ended, overflowed);
  // A mask looks at each stack alone. All stacks together may exceed the limit on stacks and drop
  // the one that allows this text, so they are tried one by one.
  for (std::size_t i = 0; !found && overflowed && i < from.size(); ++i) {
    frames_.truncate(before);
    now = {from[i]};
    bool some = false;
    found = follow(text, now, ended, some);
  }
  if (!found) {
    frames_.truncate(before);
    return false;
  }
  configs_ = std::move(now);
  ended_ = ended;
  compact();
  return true;
}

// Frames that no stack uses any more are collected from time to time.
void ConstraintMatcher::compact() {
  constexpr std::size_t kFew = 1024;
  std::size_t live = 0;
  if (frames_.size() < kFew) return;
  for (const Config& c : configs_)
    for (grammar::FrameId f = c.frame; f != Frames::kBottom; f = frames_[f].parent) ++live;
  if (frames_.size() < kFew + 4 * live) return;
  Frames fresh(constraint_->machine(), constraint_->trie().longest());
  for (Config& c : configs_) {
    std::vector<grammar::FrameId> chain;
    for (grammar::FrameId f = c.frame; f != Frames::kBottom; f = frames_[f].parent)
      chain.push_back(f);
    grammar::FrameId at = Frames::kBottom;
    for (std::size_t i = chain.size(); i-- > 0;) {
      grammar::Frame frame = frames_[chain[i]];
      frame.parent = at;
      at = fresh.push(frame);
    }
    c.frame = at;
  }
  frames_ = std::move(fresh);
}

}  // namespace vitrine
