// What was said to the model and what it said, of requests that asked to be kept ("vitrine":
// {"record": true}): ids, parameters and seed. Everything else about them, logits and the stages of
// sampling, is computed again from these (replay.h). In memory only, never in a file. When there is no room,
// the oldest of the tenant that has the most go: nobody's are crowded out by another's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/request.h"

namespace vitrine {

struct Call;
struct HttpRequest;
struct TextEndpoint;

enum class RecordMode { kAsked, kAll, kNone };
std::optional<RecordMode> record_mode(std::string_view name);  // "asked", "all", "none"
const char* record_mode_name(RecordMode mode);

enum class SaidKind : std::uint8_t { kOutput, kReasoning, kTool };

// One sequence. Copies share the prompt and the parameters.
struct Text {
  std::uint64_t id = 0;      // the engine's
  std::uint64_t parent = 0;  // of a fork; 0: none
  std::string label, tenant;
  int index = 0;           // of the choice in its answer
  int choice = 0;          // with whose random numbers it is drawn
  std::uint64_t seed = 0;  // drawn for it where the request brought none
  std::shared_ptr<const std::vector<std::int32_t>> prompt;
  std::shared_ptr<const Call> call;        // resolved, without its prompts
  const TextEndpoint* endpoint = nullptr;  // which asked for it
  std::weak_ptr<TokenStream> stream;       // while it runs

  int begun = 0;  // tokens of the output that were there when it began: a fork's
  // By token of the output.
  std::vector<std::int32_t> output;
  std::vector<std::int64_t> at_ns;  // process_ns(); 0 of tokens that had begun
  std::vector<float> logprobs;
  std::vector<float> p;  // TokenEvent::p; shorter where those that follow have none
  std::vector<SaidKind> kinds;

  bool ended = false;
  FinishReason reason = FinishReason::kCancelled;  // once it has ended
  std::int32_t stop_token = -1;                    // that ended it; -1: none
  int cached_tokens = 0;                           // of the prompt; once it has ended

  // Prompt and output.
  int length() const { return static_cast<int>(prompt->size() + output.size()); }
  std::int32_t token(int position) const {
    auto at = static_cast<std::size_t>(position);
    return at < prompt->size() ? (*prompt)[at] : output[at - prompt->size()];
  }
  // TokenEvent::p of a token of the output.
  float p_at(int position) const {
    const auto at = static_cast<std::size_t>(position) - prompt->size();
    return at < p.size() ? p[at] : kNoShare;
  }
  // What was drawn for a position: a token of the output, or the one that ended it.
  std::optional<std::int32_t> told(int position) const {
    if (position < length()) return token(position);
    if (position == length() && ended && stop_token >= 0) return stop_token;
    return std::nullopt;
  }
  // Without what choices share: the prompt and the parameters.
  std::size_t bytes() const;
  std::size_t fixed_bytes = 0;  // of them, what does not grow; by Texts::begin()
};

class Texts;

// The text of a request that runs, for its reader. Its end is the text's.
class Recording {
 public:
  Recording(Texts& texts, std::uint64_t id) : texts_(texts), id_(id) {}
  ~Recording();
  Recording(const Recording&) = delete;
  void add(const TokenEvent& event, SaidKind kind) noexcept;
  void end(const Finish& finish) noexcept;

 private:
  Texts& texts_;
  std::uint64_t id_;
  bool ended_ = false;
};

// Thread-safe.
class Texts {
 public:
  static constexpr std::int64_t kDefaultBytes = 64 << 20;

  // Before requests come.
  void configure(RecordMode mode, std::int64_t most_bytes) {
    mode_ = most_bytes > 0 ? mode : RecordMode::kNone;
    most_bytes_ = static_cast<std::size_t>(most_bytes);
  }
  RecordMode mode() const { return mode_; }
  std::size_t most_bytes() const { return most_bytes_; }
  bool keeps(bool asked) const {
    return mode_ == RecordMode::kAll || (mode_ == RecordMode::kAsked && asked);
  }

  std::unique_ptr<Recording> begin(Text text);
  // Which choices are kept of the request with that number (for operators) or label that `http` may see,
  // oldest first. Of several requests with one label the newest.
  struct Kept {
    std::uint64_t id = 0;
    int index = 0;  // of the choice
  };
  std::vector<Kept> find(std::string_view name, const HttpRequest& http) const;
  std::optional<Text> get(std::uint64_t id) const;  // a copy
  // Each that `http` may see, oldest first: copies, one at a time, so that nobody waits for what `see` does.
  void visit(const HttpRequest& http, const std::function<void(const Text&)>& see) const;
  bool has(std::uint64_t id) const;
  std::vector<std::uint64_t> forks_of(std::uint64_t id) const;
  // Forgets what find() would find: their ids.
  std::vector<std::uint64_t> forget(std::string_view name, const HttpRequest& http);

  std::size_t size() const;
  std::size_t bytes() const;

 private:
  friend class Recording;
  using Map = std::map<std::uint64_t, Text>;
  // What a tenant has.
  struct Shelf {
    std::size_t bytes = 0;
    std::set<std::uint64_t> ids;
  };
  // A prompt, or parameters: counted once, however many choices have them.
  struct Shared {
    std::size_t bytes = 0;
    int holders = 0;
  };
  void count(Shelf& shelf, std::size_t more);  // may wrap: fewer
  void take(Shelf& shelf, const void* shared);
  void give_back(Shelf& shelf, const void* shared);
  void drop(Map::iterator it);
  void make_room();

  RecordMode mode_ = RecordMode::kAsked;
  std::size_t most_bytes_ = kDefaultBytes;
  mutable std::mutex mutex_;
  // Guarded by mutex_.
  Map texts_;                             // by id: by age
  std::map<std::string, Shelf> shelves_;  // by tenant; those that have something
  std::map<const void*, Shared> shared_;  // by address
  std::size_t bytes_ = 0;
};

}  // namespace vitrine
