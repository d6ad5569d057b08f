// What happened to each request of a load, as the client saw it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "load/http_parser.h"

namespace vitrine::load {

enum class Outcome {
  kOk,           // 200, a whole stream
  kRejected,     // 429: the queue was full
  kHttpError,    // another status
  kStreamError,  // 200, then an error frame
  kBroken,       // not HTTP, not JSON, or it ended in the middle
  kConnect,      // no connection
  kTimeout,      // the client gave up
};
const char* outcome_name(Outcome outcome);

// Times in seconds since the load began.
struct RequestTrace {
  Outcome outcome = Outcome::kBroken;
  int status = 0;         // of HTTP; 0: none came
  double scheduled = 0;   // open loop: when it was to be sent; closed loop: when it was sent
  double sent = 0;        // when the client had a connection for it
  double first = -1;      // first frame with text; -1: none
  double last = -1;       // last frame with text
  double end = 0;         // of the answer
  int asked_tokens = 0;   // max_tokens
  int prompt_tokens = 0;  // by the server's usage
  int cached_tokens = 0;
  int output_tokens = 0;    // by the server's usage; without one, the frames with text
  std::vector<float> gaps;  // between frames with text
  std::string error;        // a message
};

struct LoadTrace {
  std::vector<RequestTrace> requests;
  double wall_s = 0;  // from the beginning to the last answer's end
  double cpu_s = 0;   // of the client
};

// Reads the events of one streamed completion into a trace.
class CompletionStream {
 public:
  explicit CompletionStream(RequestTrace& trace) : trace_(&trace) {}
  void feed(std::string_view bytes, double now);
  // The body is over: sets the trace's outcome.
  void finish(double now);

 private:
  void event(std::string_view data, double now);
  void text_frame(double now);

  RequestTrace* trace_;
  SseParser sse_;
  int frames_ = 0;
  bool done_ = false, usage_ = false, failed_ = false, malformed_ = false;
};

}  // namespace vitrine::load
