#include "server/answer/pieces.h"

#include <algorithm>

#include "base/json.h"

namespace vitrine {
namespace {

constexpr std::size_t kSlice = 4 << 10;

// Where slice i of a text begins: at the start of a character.
std::size_t slice_start(const std::string& text, std::size_t i) {
  std::size_t at = std::min(i * kSlice, text.size());
  for (int k = 0; k < 3 && at < text.size() && (text[at] & 0xC0) == 0x80; ++k) ++at;
  return at;
}

}  // namespace

Pieces& Pieces::add(std::string text) {
  return add(1, [text = std::move(text)](std::string& out, std::size_t) { out += text; });
}

Pieces& Pieces::add(std::size_t count, Write write) {
  steps_.push_back({count, std::move(write)});
  return *this;
}

Pieces& Pieces::list(std::size_t count, Write write) {
  add("[");
  add(count, [write = std::move(write)](std::string& out, std::size_t i) {
    if (i > 0) out += ',';
    write(out, i);
  });
  return add("]");
}

Pieces& Pieces::text(std::shared_ptr<const std::string> text) {
  add("\"");
  add(text->size() / kSlice + 1, [text](std::string& out, std::size_t i) {
    std::size_t begin = slice_start(*text, i), end = slice_start(*text, i + 1);
    append_json_piece(out, std::string_view(*text).substr(begin, end - begin));
  });
  return add("\"");
}

bool Pieces::operator()(std::string& out) {
  for (; step_ < steps_.size(); ++step_, at_ = 0)
    for (; at_ < steps_[step_].count; ++at_) {
      if (out.size() >= kPieceBytes) return true;
      steps_[step_].write(out, at_);
    }
  return false;
}

Reply reply_in_pieces(Pieces pieces, std::size_t held) {
  Reply out((std::string()));
  if (!pieces(out.body)) return out;
  out.more = std::move(pieces);
  out.held = static_cast<std::int64_t>(held);
  return out;
}

}  // namespace vitrine
