#include "server/texts.h"

#include <new>

#include "grammar/constraint.h"
#include "server/http/http.h"
#include "server/request/call.h"

namespace vitrine {

std::optional<RecordMode> record_mode(std::string_view name) {
  if (name == "asked") return RecordMode::kAsked;
  if (name == "all") return RecordMode::kAll;
  if (name == "none") return RecordMode::kNone;
  return std::nullopt;
}

namespace {

// What choices share counts for each: the sum is never too small.
std::size_t fixed_bytes(const Text& text) {
  const Request& r = text.call->request;
  std::size_t sum =
      sizeof(Text) + sizeof(Call) + text.label.capacity() + text.tenant.capacity() + 256;
  sum += text.prompt->capacity() * sizeof(std::int32_t);
  sum += r.stop_token_ids.capacity() * sizeof(std::int32_t) +
         r.sampling.logit_bias().entries().size() * sizeof(LogitBias);
  if (text.call->stops) sum += text.call->stops->size() * 4 * StopStrings::kMaxBytes;
  if (r.constraint) sum += r.constraint->bytes();
  return sum;
}

}  // namespace

const char* record_mode_name(RecordMode mode) {
  static constexpr const char* kNames[] = {"asked", "all", "none"};
  return kNames[static_cast<int>(mode)];
}

std::size_t Text::bytes() const {
  return fixed_bytes + output.capacity() * sizeof(std::int32_t) +
         at_ns.capacity() * sizeof(std::int64_t) + logprobs.capacity() * sizeof(float) +
         kinds.capacity();
}

Recording::~Recording() {
  if (ended_) return;
  Finish cut;
  cut.reason = FinishReason::kCancelled;
  end(cut);
}

// Where there is no memory for it the text is forgotten, and the answer goes on.
void Recording::add(const TokenEvent& event, SaidKind kind) noexcept {
  std::lock_guard lock(texts_.mutex_);
  const auto it = texts_.texts_.find(id_);
  if (it == texts_.texts_.end()) return;
  Text& text = it->second;
  texts_.bytes_ -= text.bytes();
  try {
    text.output.push_back(event.token);
    text.at_ns.push_back(event.at_ns);
    text.logprobs.push_back(event.logprob);
    text.kinds.push_back(kind);
    texts_.bytes_ += text.bytes();
  } catch (const std::bad_alloc&) {
    texts_.bytes_ += text.bytes();
    texts_.drop(it);
  }
  texts_.make_room();
}

void Recording::end(const Finish& finish) noexcept {
  ended_ = true;
  std::lock_guard lock(texts_.mutex_);
  const auto it = texts_.texts_.find(id_);
  if (it == texts_.texts_.end()) return;
  Text& text = it->second;
  text.ended = true;
  text.reason = finish.reason;
  text.stop_token = finish.stop_token;
  text.cached_tokens = finish.account.usage.cached_tokens;
  text.stream.reset();
}

std::unique_ptr<Recording> Texts::begin(Text text) {
  const std::uint64_t id = text.id;
  text.fixed_bytes = fixed_bytes(text);
  auto recording = std::make_unique<Recording>(*this, id);
  std::lock_guard lock(mutex_);
  bytes_ += text.bytes();
  texts_.insert_or_assign(id, std::move(text));
  make_room();
  return recording;
}

void Texts::drop(std::map<std::uint64_t, Text>::iterator it) {
  bytes_ -= it->second.bytes();
  // Nobody can release it any more.
  if (const auto stream = it->second.stream.lock()) stream->release();
  texts_.erase(it);
}

void Texts::make_room() {
  while (bytes_ > most_bytes_ && !texts_.empty()) drop(texts_.begin());
}

// Numbers are an operator's: they count everybody's requests.
bool Texts::matches(const Text& text, std::string_view name, const HttpRequest& http) const {
  const bool all = http.rights.is_operator;
  if (!all && text.tenant != http.tenant) return false;
  return text.label == name || (all && std::to_string(text.id) == name);
}

std::vector<Text> Texts::find(std::string_view name, const HttpRequest& http) const {
  std::vector<Text> out;
  std::lock_guard lock(mutex_);
  for (const auto& [id, text] : texts_) {
    if (!matches(text, name, http)) continue;
    // A label that was used again: its first choice begins the newer answer.
    if (!out.empty() && text.index <= out.back().index) out.clear();
    out.push_back(text);
  }
  return out;
}

void Texts::visit(const HttpRequest& http, const std::function<void(const Text&)>& see) const {
  std::lock_guard lock(mutex_);
  for (const auto& [id, text] : texts_)
    if (http.rights.is_operator || text.tenant == http.tenant) see(text);
}

bool Texts::has(std::uint64_t id) const {
  std::lock_guard lock(mutex_);
  return texts_.contains(id);
}

std::vector<std::uint64_t> Texts::forks_of(std::uint64_t id) const {
  std::vector<std::uint64_t> out;
  std::lock_guard lock(mutex_);
  for (const auto& [child, text] : texts_)
    if (text.parent == id) out.push_back(child);
  return out;
}

std::vector<std::uint64_t> Texts::forget(std::string_view name, const HttpRequest& http) {
  std::vector<std::uint64_t> out;
  std::lock_guard lock(mutex_);
  for (auto it = texts_.begin(); it != texts_.end();) {
    const auto next = std::next(it);
    if (matches(it->second, name, http)) out.push_back(it->first), drop(it);
    it = next;
  }
  return out;
}

std::size_t Texts::size() const {
  std::lock_guard lock(mutex_);
  return texts_.size();
}

std::size_t Texts::bytes() const {
  std::lock_guard lock(mutex_);
  return bytes_;
}

}  // namespace vitrine
