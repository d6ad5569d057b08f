#include "server/trace_hub.h"

#include <utility>

#include "trace/event_json.h"
#include "trace/packing.h"

namespace vitrine {
namespace {

constexpr std::size_t kPacked = 256 << 10;  // read from the log at a time

bool is_lost(const PackedEvent& event) {
  if (event.kind == EventKind::kPlan) return unpacked_head<PlanFields, PlanEvent>(event.bytes).lost;
  return event.kind == EventKind::kStep && unpacked_head<StepFields, StepEvent>(event.bytes).lost;
}

}  // namespace

void append_event_frame(std::string& out, std::string_view name, std::uint64_t id,
                        std::string_view data) {
  out += "event: ";
  out += name;
  if (id > 0) out += "\nid: " + std::to_string(id);
  out += "\ndata: ";
  out += data;
  out += "\n\n";
}

std::unique_ptr<TraceHub::Stream> TraceHub::open(Engine& engine) {
  std::lock_guard lock(mutex_);
  if (streams_ == kMostStreams) return nullptr;
  auto out = std::make_unique<Stream>(*this, engine);
  ++streams_;
  return out;
}

void TraceHub::close() {
  std::lock_guard lock(mutex_);
  if (--streams_ > 0) return;
  frames_ = {};
  words_ = {};
  bytes_ = 0;
  reading_ = false;
}

int TraceHub::streams() const {
  std::lock_guard lock(mutex_);
  return streams_;
}

void TraceHub::keep(Frame frame) {
  const std::size_t size = frame.text.size();
  frames_.push_back(std::move(frame));
  bytes_ += size;
  for (; bytes_ > kMostUnread; frames_.pop_front()) bytes_ -= frames_.front().text.size();
}

void TraceHub::poll(const Engine& engine) {
  polled_ = std::chrono::steady_clock::now();
  try {
    read_on(engine);
  } catch (...) {
    // It has read further than it has frames: those that it has would no longer be followed by the next.
    forget();
    throw;
  }
}

void TraceHub::read_on(const Engine& engine) {
  const std::uint64_t newest = engine.log().last_seq();
  std::string data;
  while (place_.seq <= newest) {
    if (engine.log().read(place_, words_, kPacked) > 0) forget();
    if (words_.empty()) break;
    StepLog::each(words_, [&](const PackedEvent& event) {
      data = "{";
      append_event_fields(data, event);
      data += '}';
      Frame frame{.seq = event.seq, .lost = is_lost(event), .text = {}};
      append_event_frame(frame.text, event_info(event.kind).name, event.seq, data);
      keep(std::move(frame));
    });
  }
}

TraceHub::Stream::~Stream() {
  engine_.unwatch();
  hub_.close();
}

bool TraceHub::Stream::resume(std::uint64_t seq) {
  std::lock_guard lock(hub_.mutex_);
  const std::uint64_t newest = engine_.log().last_seq();
  if (seq > newest) return false;  // of another process
  if (!hub_.reading_) {
    hub_.place_ = engine_.log().find(seq + 1);
    if (hub_.place_.seq != seq + 1) return false;
    // What is more than a stream may be behind need not be written first.
    const std::uint64_t words = engine_.log().end().at - hub_.place_.at;
    if (words * sizeof(std::uint64_t) > kMostUnread) return false;
    hub_.reading_ = true;
  }
  hub_.poll(engine_);
  if (seq < newest) {
    if (!hub_.has(seq + 1)) return false;
    for (const Frame& frame : hub_.frames_)
      if (frame.seq > seq && frame.lost) return false;
  }
  next_ = seq + 1;
  return true;
}

void TraceHub::Stream::begin(const Engine::Moment& moment) {
  std::lock_guard lock(hub_.mutex_);
  if (!hub_.reading_) {
    hub_.place_ = moment.place;
    hub_.reading_ = true;
  }
  next_ = moment.seq + 1;
}

bool TraceHub::Stream::news(std::string& out, std::size_t most) {
  std::lock_guard lock(hub_.mutex_);
  if (std::chrono::steady_clock::now() - hub_.polled_ >= hub_.interval) hub_.poll(engine_);
  // The hub may not have come so far yet.
  if (next_ >= hub_.place_.seq) return true;
  if (!hub_.has(next_)) return false;
  for (auto i = static_cast<std::size_t>(next_ - hub_.frames_.front().seq);
       i < hub_.frames_.size() && out.size() < most; ++i) {
    out += hub_.frames_[i].text;
    next_ = hub_.frames_[i].seq + 1;
  }
  return true;
}

}  // namespace vitrine
