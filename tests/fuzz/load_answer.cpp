// What the load generator reads from a server: an HTTP answer with server-sent events in it. Where the
// pieces are cut makes no difference.
#include "fuzz/fuzz.h"
#include "load/http_parser.h"

using namespace vitrine;

namespace {

struct Outcome {
  bool good = true, whole = false, partial = false, overflow = false;
  int status = 0;
  std::string events;
  bool operator==(const Outcome&) const = default;
};

Outcome read(std::string_view text, std::size_t piece) {
  load::ResponseParser parser;
  load::SseParser events;
  Outcome out;
  while (!text.empty() && out.good) {
    std::string body;
    out.good = parser.feed(text.substr(0, piece), body);
    text.remove_prefix(std::min(piece, text.size()));
    if (!out.good) break;
    events.feed(body, [&](std::string_view data) { out.events.append(data).append("\n--\n"); });
  }
  out.whole = out.good && parser.close();
  out.status = parser.status();
  if (out.good) out.partial = events.partial(), out.overflow = events.overflow();
  // Of an answer that is not HTTP, how much was read before that was seen depends on the pieces.
  if (!out.good) out.events.clear();
  return out;
}

}  // namespace

void fuzz_one(fuzz::Input input) {
  const std::size_t piece = input.take() + std::size_t{1};
  Outcome whole = read(input.text(), std::max<std::size_t>(input.size(), 1));
  VT_CHECK(read(input.text(), piece) == whole);
}
