// The engine's events for everybody who watches (GET /api/trace): read from its log and written as server-sent
// events once, for all. Nothing runs while nobody watches: whoever comes to ask for news first, at most every
// `interval`, reads the log. Thread-safe.
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/engine.h"

namespace vitrine {

class TraceHub {
 public:
  static constexpr int kMostStreams = 16;
  // Bytes of events that a stream may be behind.
  static constexpr std::size_t kMostUnread = 1 << 20;
  std::chrono::milliseconds interval{50};  // to be set before anybody watches

  // Somebody who watches: after which event he is.
  class Stream {
   public:
    Stream(TraceHub& hub, Engine& engine) : hub_(hub), engine_(engine) { engine.watch(); }
    ~Stream();
    Stream(const Stream&) = delete;

    // To go on after event `seq`. False: what follows it is not all there any more.
    bool resume(std::uint64_t seq);
    // To go on after a moment.
    void begin(const Engine::Moment& moment);
    // Appends what came since the last call, up to `most` bytes and a bit. False: some of it is lost, and it has to
    // begin at a later moment.
    bool news(std::string& out, std::size_t most);
    std::uint64_t told() const { return next_ - 1; }

   private:
    TraceHub& hub_;
    Engine& engine_;
    std::uint64_t next_ = 1;  // event
  };
  // Null: there are kMostStreams already.
  std::unique_ptr<Stream> open(Engine& engine);
  int streams() const;

 private:
  struct Frame {
    std::uint64_t seq = 0;
    bool lost = false;  // there were changes before it that no event tells
    std::string text;
  };
  void close();
  // Reads the log on to its end. Under the mutex.
  void poll(const Engine& engine);
  void read_on(const Engine& engine);
  void keep(Frame frame);
  void forget() noexcept { frames_.clear(), bytes_ = 0; }
  bool has(std::uint64_t seq) const {
    return !frames_.empty() && frames_.front().seq <= seq && seq <= frames_.back().seq;
  }

  mutable std::mutex mutex_;
  // Guarded by mutex_.
  int streams_ = 0;
  bool reading_ = false;      // from place_ on
  StepLog::Place place_;      // in the log
  std::deque<Frame> frames_;  // without gaps
  std::size_t bytes_ = 0;     // of them
  std::chrono::steady_clock::time_point polled_;
  std::vector<std::uint64_t> words_;
};

// A server-sent event. `id` 0: without one.
void append_event_frame(std::string& out, std::string_view name, std::uint64_t id,
                        std::string_view data);

}  // namespace vitrine
