// Rows of logits of a text that was kept, computed again: the recorded ids up to a position as an
// ordinary sequence of the engine, below all others in priority. Rows do not depend on their company,
// so these are the rows that served.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/draw_state.h"
#include "server/api.h"

namespace vitrine {

// For one exchange, on its strand.
class Replay {
 public:
  static constexpr std::size_t kMostRows = 32;  // at a time
  static constexpr int kLevelsBelow = 5;        // of priority

  Replay(Api& api, Exchange& exchange) : api_(api), exchange_(exchange) {}
  ~Replay();  // what still runs has no reader any more
  Replay(const Replay&) = delete;

  // Gets the rows after which the tokens at `positions` (ascending, at most kMostRows) were drawn. False:
  // there are none, and refused() says why, or the client is gone.
  asio::awaitable<bool> fetch(const Text& text, std::vector<int> positions);
  std::optional<Reply>& refused() { return refused_; }
  const LogitRow& row(int position) const { return rows_.at(position); }
  int computed_rows() const { return computed_; }  // by the engine, for all of fetch()

 private:
  std::optional<Reply> start(const Text& text, std::span<const int> positions,
                             std::function<void()> waker);
  std::optional<Reply> collect(const Text& text);
  void close();

  Api& api_;
  Exchange& exchange_;
  std::map<int, LogitRow> rows_;  // by position
  std::vector<int> missing_;
  std::shared_ptr<TokenStream> stream_;  // while it runs
  std::uint64_t live_key_ = 0;
  std::int64_t taken_ = 0, charged_ = 0;  // tokens: expected of all so far, and what was computed
  int computed_ = 0;
  std::optional<Reply> refused_;
};

// What the token at `position` of a text was, or would be, drawn under: rebuilt from its ids.
// `sampling` takes the place of its own. None: its ids do not follow its constraint.
std::optional<DrawState> draw_state_at(const Api& api, const Text& text,
                                       const SamplingParams& sampling, int position);
// The backend promises that the rows have the bits of those that served.
bool replays_are_exact(const Api& api);

}  // namespace vitrine
