// A long answer, written as the client takes it. Pieces is a list of steps; nothing of the text
// exists before it is asked for.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "server/api.h"

namespace vitrine {

class Pieces {
 public:
  using Write = std::function<void(std::string& out, std::size_t i)>;

  Pieces& add(std::string text);
  // write(out, i) for all i below `count`, in order.
  Pieces& add(std::size_t count, Write write);
  // A JSON list.
  Pieces& list(std::size_t count, Write write);
  // A JSON string.
  Pieces& text(std::shared_ptr<const std::string> text);

  // Appends until `out` has kPieceBytes or there is no more (then false).
  bool operator()(std::string& out);

 private:
  struct Step {
    std::size_t count;
    Write write;
  };
  std::vector<Step> steps_;
  std::size_t step_ = 0, at_ = 0;  // the next call
};

inline constexpr std::size_t kPieceBytes = 64 << 10;

// What fits into one piece is sent whole. `held`: bytes that the steps keep.
Reply reply_in_pieces(Pieces pieces, std::size_t held);

}  // namespace vitrine
