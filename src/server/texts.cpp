#include "server/texts.h"

#include <algorithm>
#include <charconv>
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

std::size_t fixed_bytes(const Text& text) {
  return sizeof(Text) + text.label.capacity() + text.tenant.capacity() + 384;
}

std::size_t bytes_of(const std::vector<std::int32_t>& prompt) {
  return sizeof(std::vector<std::int32_t>) + prompt.capacity() * sizeof(std::int32_t) + 128;
}

std::size_t bytes_of(const Call& call) {
  const Request& r = call.request;
  std::size_t sum = sizeof(Call) + 128;
  sum += r.stop_token_ids.capacity() * sizeof(std::int32_t) + r.sampling.bytes();
  if (call.stops) sum += call.stops->size() * 4 * StopStrings::kMaxBytes;
  if (r.constraint) sum += r.constraint->bytes();
  return sum;
}

// The number that a name stands for, as it is written.
std::optional<std::uint64_t> number_of(std::string_view name) {
  std::uint64_t out = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), out);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  if (name.size() > 1 && name[0] == '0') return std::nullopt;
  return out;
}

// Whom a request names, as far as it may see them. Numbers are an operator's: they count everybody's requests.
class Wanted {
 public:
  Wanted(std::string_view name, const HttpRequest& http) : name_(name), http_(http) {
    if (http.rights.is_operator) number_ = number_of(name);
  }
  bool operator()(const Text& text) const {
    if (!http_.rights.is_operator && text.tenant != http_.tenant) return false;
    return text.label == name_ || (number_ && text.id == *number_);
  }

 private:
  const std::string_view name_;
  const HttpRequest& http_;
  std::optional<std::uint64_t> number_;
};

}  // namespace

const char* record_mode_name(RecordMode mode) {
  static constexpr const char* kNames[] = {"asked", "all", "none"};
  return kNames[static_cast<int>(mode)];
}

std::size_t Text::bytes() const {
  return fixed_bytes + output.capacity() * sizeof(std::int32_t) +
         at_ns.capacity() * sizeof(std::int64_t) + logprobs.capacity() * sizeof(float) +
         p.capacity() * sizeof(float) + kinds.capacity();
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
  const std::size_t before = text.bytes();
  bool whole = true;
  try {
    text.output.push_back(event.token);
    text.at_ns.push_back(event.at_ns);
    text.logprobs.push_back(event.logprob);
    text.kinds.push_back(kind);
    if (event.p != kNoShare) {
      text.p.resize(text.output.size() - 1, kNoShare);
      text.p.push_back(event.p);
    }
  } catch (const std::bad_alloc&) {
    whole = false;
  }
  texts_.count(texts_.shelves_.find(text.tenant)->second, text.bytes() - before);
  if (!whole) texts_.drop(it);
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
  text.fixed_bytes = fixed_bytes(text);
  const std::uint64_t id = text.id;
  const void *prompt = text.prompt.get(), *call = text.call.get();
  // What may fail for lack of memory comes first.
  auto recording = std::make_unique<Recording>(*this, id);
  std::map<const void*, Shared> shared{{prompt, {.bytes = bytes_of(*text.prompt)}},
                                       {call, {.bytes = bytes_of(*text.call)}}};
  std::map<std::string, Shelf> shelves{{text.tenant, {}}};
  std::set<std::uint64_t> ids{id};
  const std::string tenant = text.tenant;
  Map texts;
  texts.emplace(id, std::move(text));
  std::lock_guard lock(mutex_);
  shelves_.merge(shelves);
  shared_.merge(shared);
  texts_.merge(texts);
  Shelf& shelf = shelves_.find(tenant)->second;
  shelf.ids.merge(ids);
  count(shelf, texts_.find(id)->second.bytes());
  take(shelf, prompt), take(shelf, call);
  make_room();
  return recording;
}

void Texts::count(Shelf& shelf, std::size_t more) { bytes_ += more, shelf.bytes += more; }

void Texts::take(Shelf& shelf, const void* shared) {
  Shared& found = shared_.find(shared)->second;
  if (found.holders++ == 0) count(shelf, found.bytes);
}

void Texts::give_back(Shelf& shelf, const void* shared) {
  const auto found = shared_.find(shared);
  if (--found->second.holders > 0) return;
  count(shelf, -found->second.bytes);
  shared_.erase(found);
}

void Texts::drop(Map::iterator it) {
  const Text& text = it->second;
  const auto shelf = shelves_.find(text.tenant);
  count(shelf->second, -text.bytes());
  give_back(shelf->second, text.prompt.get()), give_back(shelf->second, text.call.get());
  shelf->second.ids.erase(it->first);
  if (shelf->second.ids.empty()) shelves_.erase(shelf);
  // Nobody can release it any more.
  if (const auto stream = text.stream.lock()) stream->release();
  texts_.erase(it);
}

void Texts::make_room() {
  while (bytes_ > most_bytes_ && !texts_.empty()) {
    const auto most = std::max_element(
        shelves_.begin(), shelves_.end(),
        [](const auto& a, const auto& b) { return a.second.bytes < b.second.bytes; });
    drop(texts_.find(*most->second.ids.begin()));
  }
}

std::vector<Texts::Kept> Texts::find(std::string_view name, const HttpRequest& http) const {
  std::vector<Kept> out;
  const Wanted wanted(name, http);
  std::lock_guard lock(mutex_);
  for (const auto& [id, text] : texts_) {
    if (!wanted(text)) continue;
    // A label that was used again: its first choice begins the newer answer.
    if (!out.empty() && text.index <= out.back().index) out.clear();
    out.push_back({id, text.index});
  }
  return out;
}

std::optional<Text> Texts::get(std::uint64_t id) const {
  std::lock_guard lock(mutex_);
  const auto found = texts_.find(id);
  if (found == texts_.end()) return std::nullopt;
  return found->second;
}

void Texts::visit(const HttpRequest& http, const std::function<void(const Text&)>& see) const {
  std::vector<std::uint64_t> ids;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [id, text] : texts_)
      if (http.rights.is_operator || text.tenant == http.tenant) ids.push_back(id);
  }
  for (const std::uint64_t id : ids)
    if (const std::optional<Text> text = get(id)) see(*text);
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
  const Wanted wanted(name, http);
  std::lock_guard lock(mutex_);
  for (auto it = texts_.begin(); it != texts_.end();) {
    const auto next = std::next(it);
    if (wanted(it->second)) out.push_back(it->first), drop(it);
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
